// More logins than the gateway itself can process.
import { setTimeout as sleep } from 'node:timers/promises'
import { processorTime } from '@spillway/local/processes/processor-time'
import { isOk, watchNeighbours } from '../neighbours.ts'
import { expectSteady, type StepResult, slowestLogin } from '../one-gateway.ts'
import { Findings, type Scenario } from '../scenario.ts'
import { onShortGateway, rushLogins } from '../short-gateway.ts'
import type { Stage } from '../stage/stage.ts'
import type { System } from '../stage/system.ts'

const STEP = { durationS: 12, settlingS: 3 }
/** Logins a second, and the connections that offer them: a refusal is answered after half a second to three. */
const OFFERED = [
  { perSecond: 400, connections: 400 },
  { perSecond: 800, connections: 800 },
  { perSecond: 1_200, connections: 1_200 },
  { perSecond: 2_000, connections: 2_000 },
  { perSecond: 4_000, connections: 3_000 },
]
/**
 * Of the most verdicts a second at any rate. Ten runs gave 0.85 to 0.99: three thousand connections cost a slow machine a larger share, as
 * each is refused after three seconds at the latest.
 */
const GOODPUT_SHARE = 0.8
/** From a request to its verdict or refusal, at the most. Connections that are opened all at once are accepted one after the other. */
const ANSWERED_WITHIN_MS = 5_000
/** The time of /healthz at p99, beyond that of a bare server on the same processor at the same time. */
const HEALTHZ_LIMIT_MS = 500
/** A login takes its usual time again this long after the end of a step. */
const OVER_AFTER_MS = 2_000
const FRESH_LOGINS = 40
const NOISE_MS = 250

/** One step, whose answers are counted. */
async function runStep(stage: Stage, system: System, offered: (typeof OFFERED)[number], findings: Findings) {
  const { url = '', pid = 0 } = system.gateways[0] ?? {}
  const used = () => processorTime(pid)?.totalMs ?? 0
  const [before, startMs] = [used(), performance.now()]
  const { ok, busy, slowestMs } = await rushLogins(stage, { url, ...STEP, ...offered }, findings)
  const gatewayPercent = (100 * (used() - before)) / (performance.now() - startMs)
  const name = `${offered.perSecond.toLocaleString('en')}/s`
  const slowest = `${slowestMs.toFixed(0)} ms at most`
  findings.notes.push(`${name}: ${busy} refused, ${slowest}, gateway at ${gatewayPercent.toFixed(0)} %`)
  findings.expect(slowestMs <= ANSWERED_WITHIN_MS, `at ${name} an answer took ${slowest}`)
  await sleep(OVER_AFTER_MS)
  const freshMs = await slowestLogin(system, FRESH_LOGINS)
  // No more than was offered: what had piled up while the step settled is answered in the time that counts.
  const goodput = Math.min(offered.perSecond, ok / (STEP.durationS - STEP.settlingS))
  return { name, goodput, isServed: busy === 0, freshMs }
}

export const gatewayOverload: Scenario = {
  name: 'gateway-overload',
  promise:
    'However many log in on three thousand connections, a gateway goes on doing what it can, and nobody waits for nothing.',
  run: onShortGateway(overload),
}

async function overload(system: System, url: string, stage: Stage): Promise<Findings> {
  const idleMs = await slowestLogin(system, FRESH_LOGINS)
  const watched = await watchNeighbours(stage.keeper, { '/healthz': () => isOk(url, '/healthz') })
  const findings = new Findings()
  const steps: StepResult[] = []
  for (const offered of OFFERED) steps.push(await runStep(stage, system, offered, findings))
  const neighbours = await watched()
  neighbours.expectWithin(findings, HEALTHZ_LIMIT_MS)
  expectSteady(findings, steps, { share: GOODPUT_SHARE, freshLimitMs: idleMs + NOISE_MS })
  findings.expect(findings.failed === 0, `${findings.failed} requests got no verdict, ticket or refusal`)
  findings.expect(findings.refused > 0, 'nothing was refused, so nothing was tried')
  return findings
}
