// Logins at up to ten times capacity. As many succeed as at capacity, and the others are told when
// to come back. Other endpoints stay quick, and the effects end with the spike.
import { setTimeout as sleep } from 'node:timers/promises'
import { respondAsync } from '@spillway/infra/rig/api-client'
import { startTraffic, type Visit, type VisitorOptions } from '../../load/visit.ts'
import { Findings } from '../findings.ts'
import { neighboursOf, slowestLogin, watchNeighbours } from '../one-gateway.ts'
import type { Scenario } from '../scenario.ts'
import { drained, type OwnSystem, onOwnRedis, waitingSlots } from '../stage/stage.ts'

const SLOTS = 5
const worker = waitingSlots(SLOTS, 200)

/** Short, so that the cap is reached and everything is over within one step. */
const TICKET_TTL_MS = 11_000
const LOAD_MS = 10_000
const GOODPUT_SHARE = 0.95
/** So long after the end logins are tried. */
const OVER_AFTER_MS = 2_000
const FRESH_LOGINS = 5
const WARM_UP_LOGINS = 60

const size = {
  ...worker.size,
  gateways: 1,
  workers: 1,
  gatewayEnv: { TICKET_TTL_MS: String(TICKET_TTL_MS) },
} as const

interface Step extends Pick<VisitorOptions, 'tries' | 'polite'> {
  name: string
  /** Of what workers can do. */
  times: number
}

const STEPS: readonly Step[] = [
  { name: '1×', times: 1 },
  { name: '2× and polite', times: 2, tries: 3 },
  { name: '5× and rude', times: 5, tries: 3, polite: false },
  { name: '10×', times: 10 },
]

interface StepResult {
  name: string
  visits: Visit[]
  goodput: number
  /** The slowest of the logins after it, in milliseconds. */
  freshMs: number
}

/** Goodput counts until the last hash: clients fetch the verdicts of tickets seconds after it. */
async function runStep(system: OwnSystem, { name, times, ...behaviour }: Step): Promise<StepResult> {
  const { tries = 1 } = behaviour
  const startMs = performance.now()
  const traffic = startTraffic({ ...system.visitor(), ...behaviour }, worker.perSecond * times)
  await sleep(LOAD_MS)
  const over = traffic.stop()
  // Each try may come after a wait as long as a ticket lives.
  const emptied = drained(system, TICKET_TTL_MS * (tries + 1)).then(() => performance.now())
  // Awaited below: a failure before that must not end the process.
  emptied.catch(() => undefined)
  // Clients that come back are load as well, rude ones for the 3 s of a held refusal.
  if (tries > 1) await over
  await sleep(OVER_AFTER_MS)
  const freshMs = await slowestLogin(system, FRESH_LOGINS)
  const visits = await over
  const emptiedMs = await emptied
  // A client that was refused, and came back when all was over, is no part of it.
  const counted = visits.filter(
    ({ end, ticketed, dueMs, tookMs }) => end === 'verdict' && (ticketed || dueMs + tookMs <= emptiedMs),
  )
  return { name, visits, freshMs, goodput: (counted.length * 1_000) / (emptiedMs - startMs) }
}

/** A new worker estimates by hashes of today's policy: it has to see these. */
async function warmUp(system: OwnSystem): Promise<void> {
  for (let n = 0; n < WARM_UP_LOGINS / SLOTS; n++) {
    await Promise.all(Array.from({ length: SLOTS }, () => slowestLogin(system, 1)))
  }
}

const overload: Scenario = {
  name: 'overload',
  promise:
    'At 1, 2, 5 and 10 times capacity, whether clients come back or not, as many logins succeed as at its peak, and after a spike it is over.',
  run: onOwnRedis(size, async (system, stage) => {
    const { url = '' } = system.gateways[0] ?? {}
    await warmUp(system)
    const idleMs = await slowestLogin(system, FRESH_LOGINS)
    const neighbours = await watchNeighbours(stage, url, await neighboursOf(url, system.login(4_500)))
    const results: StepResult[] = []
    for (const step of STEPS) results.push(await runStep(system, step))
    const findings = new Findings().count(results.flatMap(({ visits }) => visits))
    await neighbours.report(findings)
    findings.expectAllDefined()
    findings.expectRefusals()
    findings.notes.push(`a login before all ${idleMs.toFixed(0)} ms`)
    const peak = Math.max(...results.map(({ goodput }) => goodput))
    for (const { name, goodput, freshMs } of results) {
      const rate = `${goodput.toFixed(1)}/s`
      findings.notes.push(`${name}: ${rate}, a login after it ${freshMs.toFixed(0)} ms`)
      findings.expect(goodput >= peak * GOODPUT_SHARE, `at ${name} ${rate} succeeded of ${peak.toFixed(1)}`)
      findings.expect(Number.isFinite(freshMs), `a login after ${name} got no verdict`)
    }
    return findings
  }),
}

/** More than are done within the life of a ticket. */
const BURST = 400

const retryAfter: Scenario = {
  name: 'retry-after',
  promise: 'A refused client that retries after its Retry-After is admitted.',
  run: onOwnRedis(size, async (system) => {
    await warmUp(system)
    const findings = new Findings()
    const toldS: number[] = []
    async function visit(number: number): Promise<void> {
      const login = () => system.ask(0, '/v1/login', { body: system.login(number), ...respondAsync })
      const first = await login()
      if (first.status === 202) return void findings.ticketed++
      findings.refused++
      const seconds = Number(first.headers['retry-after'])
      toldS.push(seconds)
      await sleep(seconds * 1_000)
      const again = await login()
      if (again.status === 202) findings.succeeded++
      else findings.failed++
    }
    // Faster than any worker, and slow enough for the gateway to know how many there are.
    const visits: Promise<void>[] = []
    while (visits.length < BURST) {
      visits.push(visit(visits.length))
      await sleep(3)
    }
    await Promise.all(visits)
    findings.requests = visits.length
    await drained(system, TICKET_TTL_MS)
    findings.notes.push(`told to wait ${Math.min(...toldS)} to ${Math.max(...toldS)} s`)
    findings.expectRefusals()
    findings.expect(findings.failed === 0, `${findings.failed} came back when told to and were refused again`)
    return findings
  }),
}

export const overloadScenarios: readonly Scenario[] = [overload, retryAfter]
