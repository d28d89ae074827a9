// All workers are gone: gateways notice, nobody hangs, and everything is done when they are back.
import { setTimeout as sleep } from 'node:timers/promises'
import { readGauge } from '@spillway/local/services/prometheus'
import { type Answer, ask } from '@spillway/local/testing/api-client'
import { expect, type Findings } from '../findings.ts'
import type { Scenario } from '../scenario.ts'
import { drained } from '../stage/queue.ts'
import { openSystem, type System } from '../stage/system.ts'
import { startProbe } from '../traffic/probe.ts'
import { underFault } from '../under-fault.ts'

const CREDENTIAL = 'wait-100'
const PER_SECOND = 30
const NOTICED_WITHIN_MS = 2_000
/** Nobody waits for a worker that is not there. */
const ANSWERED_WITHIN_MS = 500
const AWAY_MS = 3_000
const SAMPLE_MS = 50

/** Kills every worker; resolves with how long it took until the last gateway knew, in milliseconds. */
async function killWorkers(system: System): Promise<number> {
  const killedAtMs = performance.now()
  for (const worker of system.workers) worker.signal('SIGKILL')
  await system.knowsWorkers(0)
  return performance.now() - killedAtMs
}

function expectNoticed(findings: Findings, noticedMs: number): void {
  findings.notes.push(`noticed after ${Math.round(noticedMs)} ms`)
  expect(findings, noticedMs <= NOTICED_WITHIN_MS, `gateways took ${Math.round(noticedMs)} ms to notice`)
}

const withoutFallback: Scenario = {
  name: 'no-worker',
  promise:
    'All workers are killed: noticed within 2 s, then a ticket or 503 at once; everything is done when they are back.',
  estimatedS: 16,
  async run(stage) {
    const redis = await stage.redis()
    const system = openSystem(stage, { redisUrl: redis.url })
    try {
      await Promise.all([system.worker(), system.worker(), system.gateway(), system.gateway()])
      await system.knowsWorkers(2)
      await stage.accounts.seed(CREDENTIAL)
      const urls = system.gateways.map(({ url }) => url)
      let noticedMs = 0
      let alone: Answer[] = []
      const findings = await underFault({
        system,
        visitor: { urls, accounts: stage.accounts, credential: CREDENTIAL },
        perSecond: PER_SECOND,
        async fault() {
          noticedMs = await killWorkers(system)
          const logins = Array.from({ length: 20 }, (_, n) =>
            ask(urls[n % urls.length] ?? '', '/v1/login', { body: stage.accounts.login(CREDENTIAL, n) }),
          )
          alone = await Promise.all(logins)
          await sleep(AWAY_MS)
          await Promise.all([system.worker(), system.worker()])
        },
        answerLimitMs: 9_000,
      })
      expectNoticed(findings, noticedMs)
      const slowestMs = Math.max(...alone.map(({ tookMs }) => tookMs))
      findings.notes.push(`answered in ${Math.round(slowestMs)} ms without workers`)
      expect(findings, slowestMs <= ANSWERED_WITHIN_MS, `without workers an answer took ${Math.round(slowestMs)} ms`)
      const honest = alone.every(({ status, body }) => status === 202 || (status === 503 && body.code === 'busy'))
      expect(findings, honest, `answers without workers were ${alone.map(({ status }) => status).join(', ')}`)
      expect(
        findings,
        alone.every(({ headers }) => 'retry-after' in headers),
        'an answer without workers has no Retry-After',
      )
      await drained(redis, system.queuePrefix)
      const tickets = alone.filter(({ status }) => status === 202)
      const redeemed = await Promise.all(
        tickets.map(({ body }) => ask(urls[0] ?? '', '/v1/tickets/redeem', { body: { ticket: body.ticket } })),
      )
      expect(
        findings,
        redeemed.every(({ status }) => status === 200),
        'a ticket came to nothing',
      )
      return findings
    } finally {
      await system.close()
      await redis.close()
    }
  },
}

const FALLBACK_SLOTS = 2
/** Real hashes beside the doubles, each of some tenths of a second of processor time. */
const COSTLY = { ARGON2_TIME: '12' }
const REGISTRATIONS_EVERY_MS = 200
const MOST_OUTSTANDING = 40
const HEALTH_LIMIT_MS = 50

const withFallback: Scenario = {
  name: 'no-worker-fallback',
  promise: 'With LOCAL_FALLBACK_CONCURRENCY=2 the gateway hashes two at a time meanwhile, and /healthz stays fast.',
  estimatedS: 19,
  async run(stage) {
    const redis = await stage.redis()
    const system = openSystem(stage, {
      redisUrl: redis.url,
      gatewayEnv: {
        ...COSTLY,
        LOCAL_FALLBACK_CONCURRENCY: String(FALLBACK_SLOTS),
        MAX_OUTSTANDING: String(MOST_OUTSTANDING),
      },
      workerEnv: { ...COSTLY, WORKER_CONCURRENCY: '8' },
    })
    try {
      await Promise.all([system.worker(), system.gateway()])
      await system.knowsWorkers(1)
      await stage.accounts.seed(CREDENTIAL)
      const [gateway] = system.gateways
      if (gateway === undefined) throw new Error('there is no gateway')
      let noticedMs = 0
      let mostActive = 0
      const during = { refused: 0, answered: 0 }
      const health = { p99Ms: 0, failed: 0 }
      const answered = () => readGauge(gateway.opsUrl, 'spillway_wait_seconds_count', ['outcome="answered"'])
      const refused = () => readGauge(gateway.opsUrl, 'spillway_refused_total', ['reason="too_many_waiting"'])
      const findings = await underFault({
        system,
        visitor: { urls: [gateway.url], accounts: stage.accounts, credential: CREDENTIAL },
        perSecond: PER_SECOND,
        async fault() {
          noticedMs = await killWorkers(system)
          // What the dead held is given free by the first check of the stand-in.
          await sleep(AWAY_MS)
          const before = { answered: await answered(), refused: await refused() }
          const registrations = startProbe(async () => {
            void ask(gateway.url, '/v1/users', { body: stage.accounts.registration() })
            return true
          }, REGISTRATIONS_EVERY_MS)
          const healthz = startProbe(async () => (await ask(gateway.url, '/healthz')).status === 200, 20)
          const activeJobs = startProbe(async () => {
            mostActive = Math.max(
              mostActive,
              Number(await redis.command('LLEN', `${system.queuePrefix}:passwords:active`)),
            )
            return true
          }, SAMPLE_MS)
          await sleep(AWAY_MS)
          await Promise.all([registrations.stop(), activeJobs.stop()])
          const { latency, failed } = await healthz.stop()
          Object.assign(health, { p99Ms: latency.atMs(99), failed })
          during.answered = (await answered()) - before.answered
          during.refused = (await refused()) - before.refused
          await system.worker()
        },
        answerLimitMs: 9_000,
      })
      expectNoticed(findings, noticedMs)
      findings.notes.push(
        `meanwhile ${during.answered} answered, ${during.refused} refused, at most ${mostActive} in hand, ` +
          `/healthz p99 ${health.p99Ms.toFixed(1)} ms`,
      )
      expect(findings, during.answered > 0, 'nothing was hashed here meanwhile')
      expect(findings, during.refused > 0, 'nothing was refused meanwhile, though more came than could be done')
      expect(findings, mostActive <= FALLBACK_SLOTS, `${mostActive} jobs were in hand at a time`)
      expect(findings, health.failed === 0, `/healthz failed ${health.failed} times`)
      expect(findings, health.p99Ms <= HEALTH_LIMIT_MS, `/healthz took ${health.p99Ms.toFixed(1)} ms at p99`)
      await drained(redis, system.queuePrefix)
      return findings
    } finally {
      await system.close()
      await redis.close()
    }
  },
}

export const noWorkerScenarios: readonly Scenario[] = [withoutFallback, withFallback]
