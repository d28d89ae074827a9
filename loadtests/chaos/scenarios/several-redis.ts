// Two Redis servers side by side: one fails, both fail, the second comes and goes. Tickets are
// redeemed whatever becomes of their server.
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '@spillway/infra/processes/until'
import { type ApiAnswer, redeemUntilAnswered, respondAsync } from '@spillway/infra/rig/api-client'
import type { Findings } from '../findings.ts'
import { type Scenario, underFault } from '../scenario.ts'
import { onRedis, onSharedRedis, type RedisServer, type Stage, type System } from '../stage/stage.ts'
import { type RedisFault, redisFaults } from './redis.ts'
import { roll, rollingSize, type Version } from './rolling.ts'

/** Eight slots of 100 ms do eighty logins a second: half are busy, with jobs of either server. */
const CREDENTIAL = 'wait-100'
const PER_SECOND = 30
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

const runOnTwo = onSharedRedis(startTwoRedis, { credential: CREDENTIAL })

const oneFails = [...redisFaults, lost].map(
  (fault): Scenario => ({
    name: `several-${fault.name}`,
    promise: `One of two Redis ${fault.what}: no login fails, its tickets are answered or 410 ticket_lost, and it is used again.`,
    family: 'several',
    run: runOnTwo(async (system, { second }) => {
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
      family: 'several',
      run: runOnTwo((system, { first, second }) =>
        underFault(system, { perSecond: PER_SECOND, fault: () => Promise.all([first, second].map(inject)) }),
      ),
    }),
  )

const TICKET_TTL_MS = 5_000
const gatewayEnv = { ...rollingSize.gatewayEnv, TICKET_TTL_MS: String(TICKET_TTL_MS), LOGIN_WAIT_MS: '2000' }

export const severalRolling: Scenario = {
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

export const severalRedisScenarios: readonly Scenario[] = [...oneFails, ...bothFail]

// Tickets of logins, redeemed whatever becomes of the Redis that has their jobs.

/** A ticket must be settled within its life: TICKET_TTL_MS. */
const LIFE_MS = 300_000
const USED_WITHIN_MS = 60_000
/** Between two logins of one gateway that look for it: the capacity is for the visitors. */
const LOOK_EVERY_MS = 100
/** Accounts that no visitor of the scenario has reached. */
const FIRST_ACCOUNT = 4_000

/** What was found out, for the findings of its scenario. */
export type Report = (findings: Findings) => void

/** So many logins at once, each answered with a ticket. */
async function takeTickets(system: System, count: number): Promise<ApiAnswer[]> {
  const login = (n: number) => system.ask(n, '/v1/login', { ...loginOf(system, n), ...respondAsync })
  return await Promise.all(Array.from({ length: count }, (_, n) => login(n)))
}

/** Redeems all: after `ticket_lost` the login is sent again. Each must end with a session. */
async function redeemAll(system: System, given: readonly ApiAnswer[]): Promise<Report> {
  const startMs = performance.now()
  let sentAgain = 0
  const redeeming = (n: number) => ({
    redeem: (ticket: string) => system.ask(n + 1, '/v1/tickets/redeem', { body: { ticket } }),
    endMs: startMs + LIFE_MS,
  })
  const ends = await Promise.all(
    given.map(async (first, n) => {
      const end = await redeemUntilAnswered(first, redeeming(n))
      if (end.body.code !== 'ticket_lost') return end
      sentAgain += 1
      return await redeemUntilAnswered(await system.ask(n, '/v1/login', loginOf(system, n)), redeeming(n))
    }),
  )
  const tookS = ((performance.now() - startMs) / 1_000).toFixed(1)
  const bad = ends.filter(({ status }) => status !== 200).map(({ status, text }) => `${status} ${text.slice(0, 100)}`)
  return (findings) => {
    findings.notes.push(`${given.length} tickets answered within ${tookS} s, ${sentAgain} after 410 ticket_lost`)
    findings.expect(
      given.every(({ status }) => status === 202),
      'a login that asked for a ticket got no ticket',
    )
    findings.expect(bad.length === 0, `${bad.length} tickets came to nothing: ${bad.slice(0, 3).join(', ')}`)
  }
}

/** How soon every gateway adds jobs to this Redis again. */
async function usedAgain(system: System, server: RedisServer): Promise<Report> {
  const startMs = performance.now()
  const adds = async (n: number): Promise<boolean> => {
    const { body } = await system.ask(n, '/v1/login', { ...loginOf(system, n), ...respondAsync })
    const job = `${system.queuePrefix}:passwords:${body.ticket?.split('.')[0]}`
    if (Number(await server.command('EXISTS', job)) === 1) return true
    await sleep(LOOK_EVERY_MS)
    return false
  }
  const used = await Promise.all(
    system.gateways.map((_, n) => until(() => adds(n), { timeoutMs: USED_WITHIN_MS }).catch(() => false)),
  )
  const tookS = ((performance.now() - startMs) / 1_000).toFixed(1)
  return (findings) => {
    findings.notes.push(`used again after ${tookS} s`)
    findings.expect(used.every(Boolean), `it was not used again within ${USED_WITHIN_MS} ms`)
  }
}

function loginOf(system: System, n: number) {
  return { body: system.login(FIRST_ACCOUNT + n) }
}
