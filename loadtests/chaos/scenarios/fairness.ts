// Floods of registrations, from one address, on one account: limits cut them off before a hash.
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '@spillway/infra/processes/until'
import { type ApiAnswer, readMetric } from '@spillway/infra/rig/api-client'
import { startLoop } from '@spillway/infra/rig/open-loop'
import { startTraffic } from '../../load/visit.ts'
import { Findings, percent } from '../findings.ts'
import type { Scenario } from '../scenario.ts'
import { drained, onOwnRedis } from '../stage/stage.ts'

const FLOOD_PER_SECOND = 300
const LOGINS_PER_SECOND = 20
const FLOOD_MS = 12_000
const TICKET_TTL_MS = 11_000
/** Counted once the flood has filled the queue. */
const SETTLING_MS = 4_000
/** Of the admitted share of registrations. */
const LEAST_SHARE = 0.8

/** Real hashes of one slot: a hundred a second with the native engine. */
const oneSlot = {
  credential: 'argon2id',
  gateways: 1,
  workers: 1,
  gatewayEnv: { TICKET_TTL_MS: String(TICKET_TTL_MS) },
  workerEnv: { WORKER_CONCURRENCY: '1' },
} as const

const registrations: Scenario = {
  name: 'flood-registrations',
  promise: 'A flood of registrations at a multiple of capacity takes no more from logins than its share.',
  alone: true,
  run: onOwnRedis(oneSlot, async (system, stage) => {
    const flood = { sent: 0, letIn: 0 }
    const countedFromMs = performance.now() + SETTLING_MS
    const flooding = startLoop({
      rateAt: () => FLOOD_PER_SECOND,
      async send(dueMs) {
        const { status } = await system.ask(0, '/v1/users', { body: stage.accounts.registration() })
        if (dueMs < countedFromMs) return
        flood.sent++
        if (status === 201 || status === 202) flood.letIn++
      },
    })
    const traffic = startTraffic(system.visitor(), LOGINS_PER_SECOND)
    await sleep(FLOOD_MS)
    const [visits] = await Promise.all([traffic.stop(), flooding.stop()])
    await drained(system, TICKET_TTL_MS * 2)

    const findings = new Findings().count(visits)
    const counted = visits.filter(({ dueMs }) => dueMs >= countedFromMs)
    const logins = counted.filter(({ end }) => end !== 'refused').length / counted.length
    const registered = flood.letIn / flood.sent
    findings.notes.push(`let in: ${percent(logins)} of logins, ${percent(registered)} of registrations`)
    findings.expectAllDefined()
    findings.expect(registered < 0.9, 'the flood was let in, so nothing was tried')
    findings.expect(logins >= registered * LEAST_SHARE, `only ${percent(logins)} of logins were let in`)
    return findings
  }),
}

const PER_ADDRESS = 60
const PER_ACCOUNT = 10
const FLOOD = 300
/** Until a state comes that must. */
const PATIENCE_MS = 60_000

const limited = {
  workers: 1,
  gatewayEnv: {
    LIMIT_PER_ADDRESS: String(PER_ADDRESS),
    LIMIT_PER_ACCOUNT: String(PER_ACCOUNT),
    TRUST_PROXY: '127.0.0.1',
  },
  workerEnv: { WORKER_CONCURRENCY: '64' },
}

const limits: Scenario = {
  name: 'flood-limits',
  promise: 'A flood from one address or on one account is cut off before a hash, by limits that all gateways share.',
  run: onOwnRedis(limited, async (system) => {
    const findings = new Findings()
    const logIn = (n: number, address: string, account: number, body = system.login(account)) =>
      system.ask(n, '/v1/login', { body, headers: { 'x-forwarded-for': address } })
    const takenOver = () => readMetric(system.workers[0]?.opsUrl ?? '', 'spillway_jobs_stalled_total')

    /** From an address only what fails counts. */
    const guess = (n: number, address: string, account: number) =>
      logIn(n, address, account, { ...system.login(account), password: 'wrong' })

    async function flood(
      what: string,
      { limit, status: expected }: { limit: number; status: number },
      send: (n: number) => Promise<ApiAnswer>,
    ): Promise<void> {
      const [hashedBefore, takenOverBefore] = [await system.jobs(), await takenOver()]
      const replies: ApiAnswer[] = []
      // In waves: a hundred at a time is flood enough.
      for (let sent = 0; sent < FLOOD; sent += 100) {
        replies.push(...(await Promise.all(Array.from({ length: 100 }, (_, n) => send(sent + n)))))
      }
      const through = replies.filter(({ status }) => status === expected)
      const ticketed = replies.filter(({ status }) => status === 202)
      const refused = replies.filter(({ status, body }) => status === 429 && body.code === 'too_many_requests')
      findings.requests += replies.length
      findings.succeeded += through.length
      findings.refused += refused.length
      findings.ticketed += ticketed.length
      findings.failed += replies.length - through.length - ticketed.length - refused.length
      // Counted after the answers. A job that another worker takes over is hashed twice.
      await until(async () => (await system.jobs()) >= hashedBefore + limit, { timeoutMs: PATIENCE_MS }).catch(
        () => false,
      )
      const hashes = (await system.jobs()) - hashedBefore
      const again = (await takenOver()) - takenOverBefore
      findings.notes.push(`${what}: ${through.length} of ${FLOOD} let through, ${hashes} hashed, ${again} taken over`)
      findings.expect(through.length === limit, `${through.length} logins ${what} were let through, not ${limit}`)
      const isAsAllowed = hashes >= limit && hashes <= limit + again
      findings.expect(isAsAllowed, `the flood ${what} cost ${hashes} hashes, not ${limit}, with ${again} taken over`)
      const headers = ['retry-after', 'ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset']
      const told = refused.every((reply) => headers.every((name) => name in reply.headers))
      findings.expect(told, `not every refusal ${what} says when to come back`)
    }

    await flood('from one address', { limit: PER_ADDRESS, status: 401 }, (n) => guess(n, '198.51.100.1', n))
    await flood('on one account', { limit: PER_ACCOUNT, status: 200 }, (n) => logIn(n, `203.0.113.${n % 250}`, 4_000))
    const slowest = await logIn(0, '198.51.100.1', 1)
    findings.notes.push(`a refusal took ${Math.round(slowest.tookMs)} ms`)
    findings.expect(slowest.status === 429, `the flood was answered ${slowest.status} when it was over`)
    const other = await logIn(0, '198.51.100.2', 4_001)
    findings.expect(other.status === 200, `someone else was answered ${other.status}`)

    // Whom the gateways refused they remember without Redis.
    await system.redis.kill()
    const away = await Promise.all([logIn(0, '198.51.100.3', 1), logIn(1, '198.51.100.2', 4_001)])
    const unavailable = away.every(({ status, body }) => status === 503 && body.code === 'unavailable')
    findings.expect(unavailable, `without Redis logins were answered ${away.map(({ status }) => status).join(', ')}`)
    await system.redis.start()
    // Limits let through for as long as their own connection is not back.
    const isCutOff = async () => (await guess(0, '198.51.100.1', 1)).status === 429
    const back = await until(isCutOff, { timeoutMs: PATIENCE_MS }).catch(() => false)
    findings.expect(back, 'the flood was not cut off again after a restart of Redis')
    return findings
  }),
}

export const fairnessScenarios: readonly Scenario[] = [registrations, limits]
