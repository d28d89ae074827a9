// Credential stuffing from too many addresses for limits, at many times the capacity. Owners of
// some accounts log in meanwhile from known devices.
import { setTimeout as sleep } from 'node:timers/promises'
import { startLoop } from '@spillway/infra/rig/open-loop'
import { startTraffic } from '../../load/visit.ts'
import { countBy, Findings, tookAt } from '../findings.ts'
import type { Scenario } from '../scenario.ts'
import { deviceTokens, homeAddress, onOwnRedis, type System, waitingSlots } from '../stage/stage.ts'

const SLOTS = 5
const worker = waitingSlots(SLOTS, 200)

const TIMES = 10
const ADDRESSES = 10_000
/** Each address asks once. */
const ATTACK_MS = (ADDRESSES * 1_000) / (worker.perSecond * TIMES)
/** The queue is full by then. */
const SETTLING_MS = 5_000
/** A fifth of the capacity: half of it is the most that known devices get. */
const OWNERS_PER_SECOND = worker.perSecond / 5
const OWNERS = 100
const SUCCEEDED_SHARE = 0.99

/** With the limits as they are by default. */
const size = {
  ...worker.size,
  workers: 1,
  gatewayEnv: {
    TRUST_PROXY: '127.0.0.1',
    TICKET_TTL_MS: '12000',
    LIMIT_PER_ADDRESS: '300',
    LIMIT_PER_ACCOUNT: '20',
    GUESSES_PER_ACCOUNT: '100',
  },
} as const

const strangersAddress = (n: number) => `10.0.${n >> 8}.${n & 255}`

/**
 * Tries a wrong password on each account in turn. The returned function ends that with the
 * statuses.
 */
function startStuffing(system: System) {
  const statuses: number[] = []
  let number = 0
  const loop = startLoop({
    rateAt: () => worker.perSecond * TIMES,
    async send() {
      const n = number++
      const { status } = await system.ask(n, '/v1/login', {
        body: { ...system.login(n), password: 'wrong' },
        headers: { 'x-forwarded-for': strangersAddress(n % ADDRESSES) },
      })
      statuses.push(status)
    },
  })
  return async () => {
    await loop.stop()
    return statuses
  }
}

export const stuffing: Scenario = {
  name: 'stuffing',
  promise: `At ${TIMES} times capacity from ten thousand addresses, known devices log in as ever: 99 % and more.`,
  run: onOwnRedis(size, async (system) => {
    // The workers are warm after it.
    const tokens = await deviceTokens(system, OWNERS, { atATime: SLOTS })
    const stuffed = startStuffing(system)
    await sleep(SETTLING_MS)
    const owners = startTraffic(
      {
        ...system.visitor(),
        login: (number) => system.login(number % OWNERS),
        headers: (number) => ({
          'spillway-device': tokens[number % OWNERS] ?? '',
          'x-forwarded-for': homeAddress(number % OWNERS),
        }),
        everyNthWrong: 0,
      },
      OWNERS_PER_SECOND,
    )
    await sleep(ATTACK_MS - SETTLING_MS)
    const [visits, tries] = await Promise.all([owners.stop(), stuffed()])

    const findings = new Findings().count(visits)
    const share = findings.succeeded / findings.requests
    const figures = `${(100 * share).toFixed(1)} % of known devices logged in, p95 ${tookAt(visits, 0.95).toFixed(0)} ms`
    findings.expectFigure(share >= SUCCEEDED_SHARE, figures)
    findings.notes.push(`${tries.length} tries of strangers: ${countBy(tries)}`)
    const refused = tries.filter((status) => status === 503).length
    findings.expect(refused > tries.length / 2, 'most strangers were let in, so nothing was tried')
    findings.expect(tries.length >= ADDRESSES * 0.95, `only ${tries.length} tries were made`)
    return findings
  }),
}
