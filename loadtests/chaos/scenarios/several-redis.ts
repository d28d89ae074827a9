// Two Redis servers side by side: one fails in every way it can, both do, and the second comes and goes, all in the middle of logins.
import { setTimeout as sleep } from 'node:timers/promises'
import { roll, rollingSize, type Version } from '../roll.ts'
import type { Scenario } from '../scenario.ts'
import type { Stage } from '../stage/stage.ts'
import { onRedis } from '../stage/system.ts'
import { type Report, redeemAll, takeTickets, usedAgain } from '../traffic/tickets.ts'
import { underFault } from '../under-fault.ts'
import { type RedisFault, redisFaults } from './redis-faults.ts'

/** Eight slots of 100 ms do eighty logins a second: half are busy at any time, with jobs of either Redis. */
const CREDENTIAL = 'wait-100'
const PER_SECOND = 40
const TICKETS = 40
/** Longer than gateways wait for a Redis server before its tickets are lost. */
const LOST_FOR_MS = 8_000

const lost: RedisFault = {
  name: 'lost',
  what: `is killed and away for ${LOST_FOR_MS / 1_000} s`,
  async inject(server) {
    await server.kill()
    await sleep(LOST_FOR_MS)
    await server.start()
  },
}

/** @returns with the URL of both */
async function startTwoRedis(stage: Stage) {
  const [first, second] = await Promise.all([stage.redis(), stage.redis()])
  const close = async () => void (await Promise.all([first.close(), second.close()]))
  return { first, second, url: `${first.url} ${second.url}`, close }
}

const oneFails = [...redisFaults, lost].map(
  (fault): Scenario => ({
    name: `several-${fault.name}`,
    promise: `One of two Redis ${fault.what}: no login fails, its tickets are answered or 410 ticket_lost, and it is used again.`,
    run: onRedis(startTwoRedis, { credential: CREDENTIAL }, async (system, { second }) => {
      const reports: Promise<Report>[] = []
      const findings = await underFault(system, {
        perSecond: PER_SECOND,
        async fault() {
          reports.push(redeemAll(system, await takeTickets(system, TICKETS)))
          await fault.inject(second)
          reports.push(usedAgain(system, second))
        },
      })
      findings.expectAllSucceeded()
      for (const report of await Promise.all(reports)) report(findings)
      return findings
    }),
  }),
)

const bothFail = redisFaults
  .filter(({ name }) => ['killed', 'frozen'].includes(name))
  .map(
    ({ name, what, inject }): Scenario => ({
      name: `several-both-${name}`,
      promise: `Each of two Redis ${what}: as with one, every request has a defined answer, and all is well again.`,
      run: onRedis(startTwoRedis, { credential: CREDENTIAL }, (system, { first, second }) =>
        underFault(system, { perSecond: PER_SECOND, fault: () => Promise.all([first, second].map(inject)) }),
      ),
    }),
  )

const TICKET_TTL_MS = 5_000
const gatewayEnv = { ...rollingSize.gatewayEnv, TICKET_TTL_MS: String(TICKET_TTL_MS), LOGIN_WAIT_MS: '2000' }

const rolling: Scenario = {
  name: 'several-rolling',
  promise:
    'Every gateway and worker gets a second Redis under load, by restarts, and loses it again: not one request fails.',
  run: onRedis(
    async (stage) => {
      const { url: both, ...two } = await startTwoRedis(stage)
      return { ...two, both, url: two.first.url }
    },
    { ...rollingSize, gatewayEnv },
    (system, { first, second, both }) => {
      const drained = on(`${first.url} drain:${second.url}`)
      // As README says.
      return roll(system, on(first.url), [
        { kind: 'worker', to: drained },
        { kind: 'gateway', to: drained },
        { kind: 'worker', to: on(both) },
        { kind: 'gateway', to: on(both) },
        { kind: 'worker', to: drained },
        { kind: 'gateway', to: drained },
        { kind: 'gateway', to: on(first.url), waitMs: TICKET_TTL_MS },
        { kind: 'worker', to: on(first.url) },
      ])
    },
  ),
}

function on(redisUrl: string): Version {
  const options = { env: { REDIS_URL: redisUrl } }
  return { gateway: options, worker: options }
}

export const severalRedisScenarios: readonly Scenario[] = [...oneFails, ...bothFail, rolling]
