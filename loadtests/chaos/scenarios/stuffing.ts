// Credential stuffing: passwords are tried on many accounts, from so many addresses that no limit by address holds them back, and many
// times as fast as workers hash. The owners of some of these accounts log in meanwhile, from devices that have done so before.
import { setTimeout as sleep } from 'node:timers/promises'
import { ask } from '@spillway/infra/rig/api-client'
import { startLoop } from '@spillway/infra/rig/open-loop'
import { quantile } from '@spillway/infra/rig/quantile'
import { startTraffic } from '../../load/visit.ts'
import { Findings, type Scenario } from '../scenario.ts'
import { onOwnRedis, type System } from '../stage/stage.ts'

/** Each hash waits so long in one of so many slots, and needs no processor time. */
const SERVICE_MS = 200
const SLOTS = 5
const CAPACITY = (SLOTS * 1_000) / SERVICE_MS

const TIMES = 10
const ADDRESSES = 10_000
/** Each address asks once. */
const ATTACK_MS = (ADDRESSES * 1_000) / (CAPACITY * TIMES)
/** The queue is full by then. */
const SETTLING_MS = 5_000
/** A fifth of the capacity: half of it is the most that known devices get. */
const OWNERS_PER_SECOND = CAPACITY / 5
const OWNERS = 100
const SUCCEEDED_SHARE = 0.99

/** With the limits as they are by default. */
const size = {
  credential: `wait-${SERVICE_MS}`,
  workers: 1,
  gatewayEnv: {
    TRUST_PROXY: '127.0.0.1',
    TICKET_TTL_MS: '12000',
    LIMIT_PER_ADDRESS: '300',
    LIMIT_PER_ACCOUNT: '20',
    GUESSES_PER_ACCOUNT: '100',
  },
  workerEnv: { WORKER_CONCURRENCY: String(SLOTS) },
} as const

const strangersAddress = (n: number) => `10.0.${n >> 8}.${n & 255}`
const ownersAddress = (owner: number) => `192.0.2.${owner + 1}`

/** Logs each owner in once, and gives the tokens of their devices. The workers are warm after it. */
async function tokensOfOwners({ gateways, login }: System): Promise<string[]> {
  const tokens: string[] = []
  async function logIn(owner: number): Promise<void> {
    const headers = { 'x-forwarded-for': ownersAddress(owner) }
    const answer = await ask(gateways[owner % gateways.length]?.url ?? '', '/v1/login', { body: login(owner), headers })
    if (answer.body.deviceToken === undefined) throw new Error(`a first login was answered ${answer.status}`)
    tokens[owner] = answer.body.deviceToken
  }
  for (let first = 0; first < OWNERS; first += SLOTS)
    await Promise.all(Array.from({ length: SLOTS }, (_, n) => logIn(first + n)))
  return tokens
}

/** Tries a wrong password on one account after the other. The returned function ends that, and says how the tries were answered. */
function startStuffing({ gateways, login }: System) {
  const statuses = new Map<number, number>()
  let number = 0
  const loop = startLoop({
    rateAt: () => CAPACITY * TIMES,
    async send() {
      const n = number++
      const { status } = await ask(gateways[n % gateways.length]?.url ?? '', '/v1/login', {
        body: { ...login(n), password: 'wrong' },
        headers: { 'x-forwarded-for': strangersAddress(n % ADDRESSES) },
      })
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    },
  })
  return async () => {
    await loop.stop()
    return { count: number, of: (status: number) => statuses.get(status) ?? 0 }
  }
}

export const stuffing: Scenario = {
  name: 'stuffing',
  promise: `At ${TIMES} times capacity from ten thousand addresses, known devices log in as ever: 99 % and more.`,
  alone: true,
  run: onOwnRedis(size, async (system) => {
    const tokens = await tokensOfOwners(system)
    const stuffed = startStuffing(system)
    await sleep(SETTLING_MS)
    const owners = startTraffic(
      {
        ...system.visitor(),
        login: (number) => system.login(number % OWNERS),
        headers: (number) => ({
          'spillway-device': tokens[number % OWNERS] ?? '',
          'x-forwarded-for': ownersAddress(number % OWNERS),
        }),
        everyNthWrong: 0,
      },
      OWNERS_PER_SECOND,
    )
    await sleep(ATTACK_MS - SETTLING_MS)
    const [visits, tries] = await Promise.all([owners.stop(), stuffed()])

    const findings = new Findings().count(visits)
    const share = findings.succeeded / findings.requests
    const p95Ms =
      quantile(
        visits.map(({ tookMs }) => tookMs),
        0.95,
      ) ?? Number.POSITIVE_INFINITY
    const figures = `${(100 * share).toFixed(1)} % of known devices logged in, p95 ${p95Ms.toFixed(0)} ms`
    findings.notes.push(figures)
    findings.notes.push(
      `${tries.count} tries of strangers: ${tries.of(503)} refused, ${tries.of(202)} tickets, ${tries.of(401)} held and wrong`,
    )
    findings.expect(share >= SUCCEEDED_SHARE, figures)
    findings.expect(tries.of(503) > tries.count / 2, 'most strangers were let in, so nothing was tried')
    findings.expect(tries.count >= ADDRESSES * 0.95, `only ${tries.count} tries were made`)
    return findings
  }),
}
