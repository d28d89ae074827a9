// More logins than the gateway itself can process: workers wait instead of hashing, and there are plenty of them. Connections are
// kept, as an ingress keeps them.
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { pinned } from '@spillway/local/processes/pinning'
import { processorTime } from '@spillway/local/processes/processor-time'
import { ask } from '@spillway/local/testing/api-client'
import { allCores, contenderCores, moveTo } from '../../measure/cores.ts'
import { startProbe } from '../../measure/probe.ts'
import { startBareServer } from '../neighbours.ts'
import { Findings, type Scenario } from '../scenario.ts'
import type { Stage } from '../stage/stage.ts'
import { type System, withOwnRedis } from '../stage/system.ts'
import type { RushOptions, RushResult } from '../traffic/rush.ts'

/** Each "hash" waits 20 ms in one of these slots: far more than one gateway passes on. */
const CREDENTIAL = 'wait-20'
const SLOTS = '200'
const gatewayCores = contenderCores && [0]

const WARM_UP = { perSecond: 400, connections: 200, durationS: 8, settlingS: 0 }
const STEP = { durationS: 12, settlingS: 3 }
/** Logins a second, and the connections that offer them: a refusal is answered after half a second. */
const OFFERED = [
  { perSecond: 400, connections: 400 },
  { perSecond: 800, connections: 800 },
  { perSecond: 1_200, connections: 1_200 },
  { perSecond: 2_000, connections: 2_000 },
  { perSecond: 4_000, connections: 3_000 },
]
/**
 * Of the most verdicts a second at any rate. Three runs on a machine with nothing else to do gave 0.91 to 0.96. On two processors, the
 * generator takes of what the database needs: in its slow hours it was 0.55 to 0.74.
 */
const GOODPUT_SHARE = 0.9
/** From a request to its verdict or refusal, at the most. Connections that are opened all at once are accepted one after the other. */
const ANSWERED_WITHIN_MS = 9_000
/** The time of /healthz at p99, beyond that of a bare server on the same processor at the same time. */
const HEALTHZ_LIMIT_MS = 500
const PROBES_PER_SECOND = 20
/** A login takes its usual time again this long after the end of a step. */
const OVER_AFTER_MS = 2_000
const FRESH_LOGINS = 40
const NOISE_MS = 250

interface StepResult extends RushResult {
  perSecond: number
  /** Verdicts a second. */
  goodput: number
  /** The slowest of the logins after it, in milliseconds. */
  freshMs: number
  gatewayPercent: number
}

/** Sends logins from a process of its own: this one is busy with the logs of the others. */
async function rush({ keeper }: Stage, options: RushOptions): Promise<RushResult> {
  const line = [process.execPath, '--import', 'tsx', program, JSON.stringify(options)]
  const [command = '', ...args] = pinned(line, contenderCores)
  return JSON.parse(await keeper.run({ command, args }))
}
const program = fileURLToPath(new URL('../traffic/rush.ts', import.meta.url))

async function runStep(stage: Stage, system: System, offered: (typeof OFFERED)[number]): Promise<StepResult> {
  const [gateway] = system.gateways
  if (gateway === undefined) throw new Error('there is no gateway')
  const used = () => processorTime(gateway.pid)?.totalMs ?? 0
  const [before, startMs] = [used(), performance.now()]
  const result = await rush(stage, { url: gateway.url, credential: CREDENTIAL, ...STEP, ...offered })
  const gatewayPercent = (100 * (used() - before)) / (performance.now() - startMs)
  await sleep(OVER_AFTER_MS)
  const freshMs = await slowestLogin(system, gateway.url)
  const goodput = (result.statuses[200] ?? 0) / (STEP.durationS - STEP.settlingS)
  return { ...result, perSecond: offered.perSecond, gatewayPercent, freshMs, goodput }
}

/** Of logins one after the other, in milliseconds; infinite when one is not answered with a verdict. */
async function slowestLogin({ login }: System, url: string): Promise<number> {
  let slowestMs = 0
  for (let n = 0; n < FRESH_LOGINS; n++) {
    const { status, tookMs } = await ask(url, '/v1/login', { body: login(n) })
    slowestMs = Math.max(slowestMs, status === 200 ? tookMs : Number.POSITIVE_INFINITY)
  }
  return slowestMs
}

function judge(findings: Findings, results: readonly StepResult[], idleMs: number): void {
  const peak = Math.max(...results.map(({ goodput }) => goodput))
  for (const { perSecond, statuses, timeouts, errors, slowestMs, goodput, freshMs, gatewayPercent } of results) {
    const { 200: ok = 0, 202: tickets = 0, 503: busy = 0 } = statuses
    const answers = Object.values(statuses).reduce((sum, count) => sum + count, 0)
    findings.requests += answers + timeouts + errors
    findings.succeeded += ok
    findings.ticketed += tickets
    findings.refused += busy
    findings.failed += answers - ok - tickets - busy + timeouts + errors
    const at = `${perSecond.toLocaleString('en')}/s`
    findings.notes.push(
      `${at}: ${goodput.toFixed(0)}/s done, ${busy} refused, ${slowestMs.toFixed(0)} ms at most, ` +
        `gateway at ${gatewayPercent.toFixed(0)} %, a login after it ${freshMs.toFixed(0)} ms`,
    )
    // Without a refusal everyone was served: the rate is below the peak.
    const isServed = busy === 0 || goodput >= peak * GOODPUT_SHARE
    findings.expect(isServed, `at ${at} ${goodput.toFixed(0)} of ${peak.toFixed(0)}/s`)
    findings.expect(slowestMs <= ANSWERED_WITHIN_MS, `at ${at} an answer took ${slowestMs.toFixed(0)} ms`)
    const isOver = freshMs <= idleMs + NOISE_MS
    findings.expect(isOver, `after ${at} a login took ${freshMs.toFixed(0)} ms, idle ${idleMs.toFixed(0)}`)
  }
  findings.expect(findings.failed === 0, `${findings.failed} requests got no verdict, ticket or refusal`)
  findings.expect(findings.refused > 0, 'nothing was refused, so nothing was tried')
}

async function rushes(stage: Stage, system: System): Promise<Findings> {
  const { url } = await system.gateway(gatewayCores ? { cores: gatewayCores } : {})
  await system.knowsWorkers(1)
  await rush(stage, { url, credential: CREDENTIAL, ...WARM_UP })
  const idleMs = await slowestLogin(system, url)
  const bare = await startBareServer(stage.keeper, gatewayCores)
  const probes = [`${url}/healthz`, bare.url].map((probed) =>
    startProbe(PROBES_PER_SECOND, async () => (await ask(probed, '')).status === 200),
  )
  const findings = new Findings()
  const results: StepResult[] = []
  for (const offered of OFFERED) results.push(await runStep(stage, system, offered))
  const [healthz, machine] = await Promise.all(probes.map((probe) => probe.stop()))
  bare.close()
  judge(findings, results, idleMs)
  const [healthzMs = 0, machineMs = 0] = [healthz?.latency.atMs(99), machine?.latency.atMs(99)]
  findings.notes.push(`/healthz ${healthzMs.toFixed(0)} ms at p99, a bare server ${machineMs.toFixed(0)} ms`)
  findings.expect(healthz?.failed === 0, `/healthz failed ${healthz?.failed} times`)
  findings.expect(healthzMs <= HEALTHZ_LIMIT_MS + machineMs, `/healthz took ${healthzMs.toFixed(0)} ms at p99`)
  return findings
}

export const gatewayOverload: Scenario = {
  name: 'gateway-overload',
  promise: 'At ten times what a gateway can do itself, it goes on doing most of that, and nobody waits for nothing.',
  estimatedS: 90,
  async run(stage) {
    const postgresPid = await stage.postgres.pid()
    try {
      // Processes started from here inherit it.
      for (const pid of [process.pid, postgresPid]) if (contenderCores) moveTo(pid, contenderCores)
      const options = {
        credential: CREDENTIAL,
        gateways: 0,
        workers: 1,
        workerEnv: { WORKER_CONCURRENCY: SLOTS },
      } as const
      return await withOwnRedis(stage, options, (system) => rushes(stage, system))
    } finally {
      for (const pid of [process.pid, postgresPid]) moveTo(pid, allCores)
    }
  },
}
