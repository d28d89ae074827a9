// A crowd behind one address gets in. Then as many clients guess passwords from there: as many
// guesses are hashed within a minute as may fail, and known devices get in.
import { setTimeout as sleep } from 'node:timers/promises'
import { closedLoop } from '@spillway/infra/rig/open-loop'
import { startTraffic, type Visit, Visitor } from '../../load/visit.ts'
import { countBy, Findings, quartiles } from '../findings.ts'
import { watchNeighbours } from '../one-gateway.ts'
import type { Scenario } from '../scenario.ts'
import { deviceTokens, onOwnRedis, type System, waitingSlots } from '../stage/stage.ts'

const worker = waitingSlots(12, 200)

const PEOPLE = 1_500
const ARRIVE_WITHIN_MS = 1_000
/** Of those who come with them and mistype: a person in sixteen. */
const MISTYPED = 100
const MAY_FAIL = 300
/** Of the work, divided by the capacity. */
const LAST_SHARE = 1.25

const GUESSES = 1_500
const WINDOW_MS = 60_000
const OWNERS = 20
const FIRST_OWNER = 4_000
const OWNERS_PER_SECOND = 5
const SUCCEEDED_SHARE = 0.99

const SCHOOL = { 'x-forwarded-for': '203.0.113.9' }

/** With the limits as they are by default. */
const size = {
  ...worker.size,
  workers: 1,
  gatewayEnv: {
    TRUST_PROXY: '127.0.0.1',
    LIMIT_PER_ADDRESS: String(MAY_FAIL),
    LIMIT_PER_ACCOUNT: '20',
    LIMIT_REDEEM_PER_ADDRESS: '30000',
    GUESSES_PER_ACCOUNT: '100',
  },
} as const

/** Everyone at once, each patient. The first of them mistype. */
async function crowd(system: System): Promise<Visit[]> {
  const [right, wrong] = [0, 1].map(
    (everyNthWrong) =>
      new Visitor({ ...system.visitor(), headers: () => SCHOOL, everyNthWrong, tries: 20, timeoutMs: 30_000 }),
  )
  const visits = Array.from({ length: PEOPLE + MISTYPED }, async (_, n) => {
    await sleep((n / (PEOPLE + MISTYPED)) * ARRIVE_WITHIN_MS)
    const visitor = n % (PEOPLE / MISTYPED + 1) === 0 ? wrong : right
    if (visitor === undefined) throw new Error('there are two visitors')
    return await visitor.visit(n)
  })
  const done = await Promise.all(visits)
  for (const visitor of [right, wrong]) visitor?.close()
  return done
}

/** Guesses for as long as a failure counts. Gives the statuses of the answers. */
async function guess(system: System, untilMs: number): Promise<number[]> {
  const statuses: number[] = []
  const tickets: (string | undefined)[] = []
  await closedLoop({
    callers: GUESSES,
    isOver: () => performance.now() >= untilMs,
    async call(n) {
      const ticket = tickets[n]
      const { status, body } = await (ticket === undefined
        ? system.ask(n, '/v1/login', { body: { ...system.login(n), password: 'wrong' }, headers: SCHOOL })
        : system.ask(n, '/v1/tickets/redeem', {
            body: { ticket },
            headers: { 'x-forwarded-for': `198.51.100.${n % 250}` },
          }))
      statuses.push(status)
      if (status === 202 || status === 401) tickets[n] = status === 202 ? (body.ticket ?? ticket) : undefined
      // The guesses must leave the processor to what is tried.
      await sleep(1_000)
    },
  })
  return statuses
}

export const crowdScenario: Scenario = {
  name: 'crowd',
  promise: `${PEOPLE} people behind one address get in within ${LAST_SHARE} of the time of their work; of guesses from there ${MAY_FAIL} a minute are hashed.`,
  alone: true,
  run: onOwnRedis(size, async (system, stage) => {
    const { url = '' } = system.gateways[0] ?? {}
    const neighbours = await watchNeighbours(stage, url)
    // From home, before.
    const tokens = await deviceTokens(system, OWNERS, { firstAccount: FIRST_OWNER })
    const beganMs = performance.now()
    const visits = await crowd(system)
    const tookS = (performance.now() - beganMs) / 1_000
    const workS = (PEOPLE + MISTYPED) / worker.perSecond
    const findings = new Findings().count(visits)
    const times = `${(tookS / workS).toFixed(2)} of the time of its work`
    const last = `the crowd: the last in after ${tookS.toFixed(1)} s, ${times}; ${quartiles(visits, [0.25, 0.5, 0.75, 1])}`
    findings.expectFigure(tookS <= workS * LAST_SHARE, last)
    findings.expectAllSucceeded()

    // A minute later each mistake of the crowd leaves a place for a guess: all within this one.
    const hashedBefore = await system.jobs()
    const owners = startTraffic(
      {
        ...system.visitor(),
        login: (number) => system.login(FIRST_OWNER + (number % OWNERS)),
        headers: (number) => ({ 'spillway-device': tokens[number % OWNERS] ?? '', ...SCHOOL }),
        everyNthWrong: 0,
      },
      OWNERS_PER_SECOND,
    )
    const statuses = await guess(system, performance.now() + WINDOW_MS)
    const known = await owners.stop()
    const hashes = (await system.jobs()) - hashedBefore - known.length
    const answered = statuses.filter((status) => status === 401).length
    findings.notes.push(`guesses in a minute: ${hashes} hashed, ${countBy(statuses)}`)
    findings.count(known)
    const through = known.filter(({ end }) => end === 'verdict').length
    const knownIn = `known devices behind the address: ${through} of ${known.length} got in`
    findings.expectFigure(through >= known.length * SUCCEEDED_SHARE, knownIn)
    await neighbours.report(findings)
    findings.expect(hashes <= MAY_FAIL, `${hashes} guesses were hashed in a minute`)
    findings.expect(answered <= MAY_FAIL, `${answered} guesses were answered in a minute`)
    findings.expect(answered >= MAY_FAIL * 0.9, `only ${answered} guesses were answered, so nothing was tried`)
    return findings
  }),
}
