// Floods: of registrations, from one address, on one account. Others get their share, and what is over a limit costs no hash.
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '@spillway/local/processes/until'
import { readGauge } from '@spillway/local/services/prometheus'
import { type Answer, ask, createApiClient } from '@spillway/local/testing/api-client'
import { openLoop } from '../../load/open.ts'
import { countVisits, expect, newFindings } from '../findings.ts'
import type { Scenario } from '../scenario.ts'
import { drained } from '../stage/queue.ts'
import { openSystem } from '../stage/system.ts'
import { startTraffic } from '../traffic/traffic.ts'
import { createVisitor } from '../traffic/visit.ts'

/** Real hashes, one at a time: some forty a second on one processor. */
const CREDENTIAL = 'argon2id'
const FLOOD_PER_SECOND = 120
const LOGINS_PER_SECOND = 20
const FLOOD_MS = 12_000
const TICKET_TTL_MS = 11_000
/** Counted once the flood has filled the queue. */
const SETTLING_MS = 4_000
/** Of the share of registrations that is let in: less would be more than the flood's share taken from logins. */
const LEAST_SHARE = 0.8

const registrations: Scenario = {
  name: 'flood-registrations',
  promise: 'A flood of registrations at a multiple of capacity takes no more from logins than its share.',
  estimatedS: 27,
  async run(stage) {
    const redis = await stage.redis()
    const system = openSystem(stage, {
      redisUrl: redis.url,
      gatewayEnv: { TICKET_TTL_MS: String(TICKET_TTL_MS) },
      workerEnv: { WORKER_CONCURRENCY: '1' },
    })
    try {
      const [, gateway] = await Promise.all([system.worker(), system.gateway()])
      await system.knowsWorkers(1)
      await stage.accounts.seed(CREDENTIAL)
      const flood = { sent: 0, letIn: 0 }
      const client = createApiClient(gateway.url)
      const startMs = performance.now()
      const flooding = openLoop({
        rateAt: () => FLOOD_PER_SECOND,
        durationMs: FLOOD_MS,
        async send(dueMs) {
          const { status } = await client.register(stage.accounts.registration())
          if (dueMs < startMs + SETTLING_MS) return
          flood.sent++
          if (status === 201 || status === 202) flood.letIn++
        },
      })
      const visitor = createVisitor({ urls: [gateway.url], accounts: stage.accounts, credential: CREDENTIAL })
      const traffic = startTraffic(visitor, LOGINS_PER_SECOND)
      await sleep(FLOOD_MS)
      const visits = await traffic.stop()
      await flooding
      client.close()
      visitor.close()
      await drained(redis, system.queuePrefix, TICKET_TTL_MS * 2)

      const findings = countVisits(visits)
      const counted = visits.filter(({ dueMs }) => dueMs >= startMs + SETTLING_MS)
      const logins = counted.filter(({ end }) => end !== 'refused').length / counted.length
      const registered = flood.letIn / flood.sent
      findings.notes.push(`let in: ${percent(logins)} of logins, ${percent(registered)} of registrations`)
      expect(findings, findings.failed === 0, `${findings.failed} logins had no defined answer, or lost their ticket`)
      expect(findings, registered < 0.9, 'the flood was let in, so nothing was tried')
      expect(findings, logins >= registered * LEAST_SHARE, `only ${percent(logins)} of logins were let in`)
      findings.broken.push(...system.complaints())
      return findings
    } finally {
      await system.close()
      await redis.close()
    }
  },
}

const PER_ADDRESS = 60
const PER_ACCOUNT = 10
const FLOOD = 300
const CUT_OFF_WITHIN_MS = 250
const RECOVERY_MS = 5_000

const limits: Scenario = {
  name: 'flood-limits',
  promise: 'A flood from one address or on one account is cut off before a hash, by limits that all gateways share.',
  estimatedS: 10,
  async run(stage) {
    const redis = await stage.redis()
    const system = openSystem(stage, {
      redisUrl: redis.url,
      gatewayEnv: {
        LIMIT_PER_ADDRESS: String(PER_ADDRESS),
        LIMIT_PER_ACCOUNT: String(PER_ACCOUNT),
        TRUST_PROXY: '127.0.0.1',
      },
      workerEnv: { WORKER_CONCURRENCY: '64' },
    })
    try {
      const [worker] = await Promise.all([system.worker(), system.gateway(), system.gateway()])
      await system.knowsWorkers(1)
      await stage.accounts.seed('wait-20')
      const findings = newFindings()
      const logIn = (n: number, address: string, account: number) =>
        ask(system.gateways[n % 2]?.url ?? '', '/v1/login', {
          body: stage.accounts.login('wait-20', account),
          headers: { 'x-forwarded-for': address },
        })
      const hashed = () => readGauge(worker.opsUrl, 'spillway_jobs_total', ['outcome="hashed"'])

      async function flood(what: string, limit: number, send: (n: number) => Promise<Answer>): Promise<void> {
        const before = await hashed()
        const replies: Answer[] = []
        // In waves: a hundred at a time is flood enough.
        for (let sent = 0; sent < FLOOD; sent += 100) {
          replies.push(...(await Promise.all(Array.from({ length: 100 }, (_, n) => send(sent + n)))))
        }
        const through = replies.filter(({ status }) => status === 200)
        const refused = replies.filter(({ status, body }) => status === 429 && body.code === 'too_many_requests')
        findings.requests += replies.length
        findings.succeeded += through.length
        findings.refused += refused.length
        findings.failed += replies.length - through.length - refused.length
        const hashes = (await hashed()) - before
        findings.notes.push(`${what}: ${through.length} of ${FLOOD} let through, ${hashes} hashed`)
        expect(findings, through.length === limit, `${through.length} logins ${what} were let through, not ${limit}`)
        expect(findings, hashes === limit, `the flood ${what} cost ${hashes} hashes, not ${limit}`)
        const headers = ['retry-after', 'ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset']
        const told = refused.every((reply) => headers.every((name) => name in reply.headers))
        expect(findings, told, `not every refusal ${what} says when to come back`)
      }

      await flood('from one address', PER_ADDRESS, (n) => logIn(n, '198.51.100.1', n))
      await flood('on one account', PER_ACCOUNT, (n) => logIn(n, `203.0.113.${n % 250}`, 4_000))
      const slowest = await logIn(0, '198.51.100.1', 1)
      expect(findings, slowest.tookMs <= CUT_OFF_WITHIN_MS, `a refusal took ${Math.round(slowest.tookMs)} ms`)
      const other = await logIn(0, '198.51.100.2', 4_001)
      expect(findings, other.status === 200, `someone else was answered ${other.status}`)

      await redis.kill()
      const away = await Promise.all([logIn(0, '198.51.100.1', 1), logIn(1, '198.51.100.2', 4_001)])
      const unavailable = away.every(({ status, body }) => status === 503 && body.code === 'unavailable')
      expect(findings, unavailable, `without Redis logins were answered ${away.map(({ status }) => status).join(', ')}`)
      await redis.start()
      // Limits let through for as long as their own connection is not back.
      const back = await until(async () => (await logIn(0, '198.51.100.1', 1)).status === 429, {
        timeoutMs: RECOVERY_MS,
      }).catch(() => false)
      expect(findings, back, `the flood was not cut off again within ${RECOVERY_MS} ms of a restart of Redis`)
      findings.broken.push(...system.complaints())
      return findings
    } finally {
      await system.close()
      await redis.close()
    }
  },
}

export const fairnessScenarios: readonly Scenario[] = [registrations, limits]

function percent(share: number): string {
  return `${Math.round(share * 100)} %`
}
