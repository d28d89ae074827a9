// All workers are gone: gateways notice, every client is answered, and everything is done when workers are back.
import { setTimeout as sleep } from 'node:timers/promises'
import { readGauge } from '@spillway/local/services/prometheus'
import { type Answer, ask } from '@spillway/local/testing/api-client'
import { startProbe } from '../../measure/probe.ts'
import type { Findings, Scenario } from '../scenario.ts'
import { drained } from '../stage/queue.ts'
import { onOwnRedis, type System } from '../stage/system.ts'
import { underFault } from '../under-fault.ts'

const CREDENTIAL = 'wait-100'
const PER_SECOND = 30
const NOTICED_WITHIN_MS = 2_000
/** No client waits for a worker that is not there. */
const ANSWERED_WITHIN_MS = 500
const AWAY_MS = 3_000

/** Kills every worker; resolves with how long it took until the last gateway knew, in milliseconds. */
async function killWorkers(system: System): Promise<number> {
  const killedAtMs = performance.now()
  for (const worker of system.workers) worker.signal('SIGKILL')
  await system.knowsWorkers(0)
  return performance.now() - killedAtMs
}

function expectNoticed(findings: Findings, noticedMs: number): void {
  findings.notes.push(`noticed after ${Math.round(noticedMs)} ms`)
  findings.expect(noticedMs <= NOTICED_WITHIN_MS, `gateways took ${Math.round(noticedMs)} ms to notice`)
}

const withoutFallback: Scenario = {
  name: 'no-worker',
  promise:
    'All workers are killed: noticed within 2 s, then a ticket or 503 at once; everything is done when they are back.',
  run: onOwnRedis({ credential: CREDENTIAL }, async (system) => {
    const { urls } = system.visitor()
    let noticedMs = 0
    let alone: Answer[] = []
    const findings = await underFault(system, {
      perSecond: PER_SECOND,
      async fault() {
        noticedMs = await killWorkers(system)
        alone = await Promise.all(
          Array.from({ length: 20 }, (_, n) =>
            ask(urls[n % urls.length] ?? '', '/v1/login', { body: system.login(n) }),
          ),
        )
        await sleep(AWAY_MS)
        await Promise.all([system.worker(), system.worker()])
      },
    })
    expectNoticed(findings, noticedMs)
    const slowestMs = Math.round(Math.max(...alone.map(({ tookMs }) => tookMs)))
    findings.notes.push(`answered in ${slowestMs} ms without workers`)
    findings.expect(slowestMs <= ANSWERED_WITHIN_MS, `without workers an answer took ${slowestMs} ms`)
    const honest = alone.every(({ status, body }) => status === 202 || (status === 503 && body.code === 'busy'))
    findings.expect(honest, `answers without workers were ${alone.map(({ status }) => status).join(', ')}`)
    const told = alone.every(({ headers }) => 'retry-after' in headers)
    findings.expect(told, 'an answer without workers has no Retry-After')
    await drained(system)
    const tickets = alone.filter(({ status }) => status === 202)
    const redeemed = await Promise.all(
      tickets.map(({ body }) => ask(urls[0] ?? '', '/v1/tickets/redeem', { body: { ticket: body.ticket } })),
    )
    const allRedeemed = redeemed.every(({ status }) => status === 200)
    findings.expect(allRedeemed, 'a ticket came to nothing')
    return findings
  }),
}

const FALLBACK_SLOTS = 2
/** Real hashes beside the doubles, each of some tenths of a second of processor time. */
const COSTLY = { ARGON2_TIME: '12' }
const HEALTH_LIMIT_MS = 50

const sizeWithFallback = {
  credential: CREDENTIAL,
  gateways: 1,
  workers: 1,
  gatewayEnv: { ...COSTLY, LOCAL_FALLBACK_CONCURRENCY: String(FALLBACK_SLOTS), MAX_OUTSTANDING: '40' },
  workerEnv: { ...COSTLY, WORKER_CONCURRENCY: '8' },
} as const

const withFallback: Scenario = {
  name: 'no-worker-fallback',
  promise: 'With LOCAL_FALLBACK_CONCURRENCY=2 the gateway hashes two at a time meanwhile, and /healthz stays fast.',
  run: onOwnRedis(sizeWithFallback, async (system, stage) => {
    const { url = '', opsUrl = '' } = system.gateways[0] ?? {}
    let noticedMs = 0
    let mostActive = 0
    const meanwhile = { refused: 0, answered: 0, healthP99Ms: 0, healthFailed: 0 }
    const answered = () => readGauge(opsUrl, 'spillway_wait_seconds_count', ['outcome="answered"'])
    const refused = () => readGauge(opsUrl, 'spillway_refused_total', ['reason="too_many_waiting"'])
    const findings = await underFault(system, {
      perSecond: PER_SECOND,
      async fault() {
        noticedMs = await killWorkers(system)
        // Jobs of the dead workers are released by the first check of the gateway's own worker.
        await sleep(AWAY_MS)
        const before = { answered: await answered(), refused: await refused() }
        const registrations = startProbe(5, () => ask(url, '/v1/users', { body: stage.accounts.registration() }))
        const healthz = startProbe(50, async () => (await ask(url, '/healthz')).status === 200)
        const activeJobs = startProbe(20, async () => {
          const active = await system.redis.command('LLEN', `${system.queuePrefix}:passwords:active`)
          mostActive = Math.max(mostActive, Number(active))
        })
        await sleep(AWAY_MS)
        void registrations.stop()
        const [{ latency, failed }] = await Promise.all([healthz.stop(), activeJobs.stop()])
        Object.assign(meanwhile, {
          answered: (await answered()) - before.answered,
          refused: (await refused()) - before.refused,
          healthP99Ms: latency.atMs(99),
          healthFailed: failed,
        })
        await system.worker()
      },
    })
    expectNoticed(findings, noticedMs)
    const { healthP99Ms, healthFailed } = meanwhile
    findings.notes.push(
      `meanwhile ${meanwhile.answered} answered, ${meanwhile.refused} refused, at most ${mostActive} in hand, ` +
        `/healthz p99 ${healthP99Ms.toFixed(1)} ms`,
    )
    findings.expect(meanwhile.answered > 0, 'nothing was hashed here meanwhile')
    findings.expect(meanwhile.refused > 0, 'nothing was refused meanwhile, though more came than could be done')
    findings.expect(mostActive <= FALLBACK_SLOTS, `${mostActive} jobs were in hand at a time`)
    findings.expect(healthFailed === 0, `/healthz failed ${healthFailed} times`)
    findings.expect(healthP99Ms <= HEALTH_LIMIT_MS, `/healthz took ${healthP99Ms.toFixed(1)} ms at p99`)
    await drained(system)
    return findings
  }),
}

export const noWorkerScenarios: readonly Scenario[] = [withoutFallback, withFallback]
