// What operators read beside logins, in the audit of a large site.
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '@spillway/infra/processes/until'
import { query } from '@spillway/infra/services/query'
import { arrivals, type Visit } from '../../load/visit.ts'
import { countBy, type Scenario, tookAt } from '../harness.ts'

const EVENTS = 2_000_000
const PER_SECOND = 30
const WARM_UP_S = 2
const CALM_S = 10
const READING_S = 20
const LOCKED_S = 3
const PAGES_BEHIND_LOCK = 12
/** What reads may add to the median of logins. */
const MEDIAN_EXTRA_MS = 25
/** Between two reads of an operator. */
const PAUSE_MS = 300

const LOCKS = `SELECT FROM pg_locks WHERE relation = 'audit_events'::regclass AND mode = 'AccessExclusiveLock' AND granted`

/** Adds the events of twelve weeks. Resolves to the account that has 125,000 of them: its password is guessed. */
async function fillAudit(databaseUrl: string) {
  const sql = `
    INSERT INTO audit_events (id, at, event, outcome, user_id, address, request_id, operator, reason)
    SELECT uuidv7(-age), now() - age, event,
      CASE WHEN guessed THEN 'wrong_password' WHEN n % 9 = 0 THEN 'unknown_account' ELSE 'ok' END,
      CASE WHEN guessed THEN accounts[1] WHEN n % 9 > 0 THEN accounts[1 + n % cardinality(accounts)] END,
      '10.1.' || n / 8000 || '.7', 'request-' || 10000000 - n,
      CASE event WHEN 'disable_account' THEN 'anna' END, CASE event WHEN 'disable_account' THEN 'asked by phone' END
    FROM (SELECT array_agg(id ORDER BY id) AS accounts FROM users) AS everyone, (
      SELECT n, n * interval '3.6 seconds' AS age, n % 16 = 0 AS guessed,
        CASE WHEN n % 1000 = 1 THEN 'disable_account' WHEN n % 10 = 3 THEN 'register' ELSE 'login' END AS event
      FROM generate_series(${EVENTS}, 1, -1) AS n) AS numbered`
  await query(databaseUrl, sql)
  await query(databaseUrl, 'VACUUM ANALYZE audit_events')
  const [account] = await query(databaseUrl, 'SELECT id, email FROM users ORDER BY id LIMIT 1')
  return { id: String(account?.id), email: String(account?.email) }
}

interface Read {
  path: string
  body?: object
  /** The reader leaves after this time [at the end]. */
  leaveMs?: number
}

/** What each operator asks for, again and again. */
function readsOf({ id, email }: { id: string; email: string }): Record<string, (n: number) => Read> {
  const filters = [
    ...[`q=${email}`, `q=${email}&outcome=ok`, 'q=10.1.100.7', 'event=disable_account&operator=anna'],
    ...['operator=nobody', 'outcome=unsupported_hash', 'event=login&outcome=wrong_password', 'from=2026-01-01'],
  ]
  const search = (n: number) => ({ path: `/audit.json?limit=500&${filters[n % filters.length]}` })
  return {
    search,
    'other search': (n) => search(n + 3),
    'whole export': () => ({ path: '/audit.ndjson' }),
    'left export': () => ({ path: '/audit.ndjson', leaveMs: 500 }),
    'export of a person': () => ({ path: `/v1/accounts/${id}/export`, body: { reason: 'asked by letter' } }),
    account: () => ({ path: '/v1/accounts/find', body: { account: email } }),
    board: () => ({ path: '/queues/api/queues?activeQueue=passwords&status=completed&page=1&jobsPerPage=30000' }),
  }
}

export const operatorReads: Scenario = {
  name: 'operator-reads',
  promise: `Operators search and export an audit of two million events, and wait behind a lock of it: every login is answered, and the median takes at most ${MEDIAN_EXTRA_MS} ms longer.`,
  async try(trial) {
    const databaseUrl = trial.servers.postgres.url
    const gatewayEnv = { OPS_PROXIES: '127.0.0.1', OPS_GROUPS: 'all:support' }
    const system = await trial.spillway({ gateways: 1, workers: 1, gatewayEnv })
    const reads = readsOf(await fillAudit(databaseUrl))
    /** Ends the reads that run. */
    const leaving = new Set<AbortController>()
    const ends: string[] = []
    let bytes = 0

    /** Reads all of an answer, as fast as it comes, unless its reader leaves. */
    async function read(operator: string, { path, body, leaveMs }: Read): Promise<void> {
      const reader = new AbortController()
      leaving.add(reader)
      const timer = leaveMs && setTimeout(() => reader.abort(), leaveMs)
      const headers = { 'x-forwarded-user': operator, 'x-forwarded-groups': 'all', 'content-type': 'application/json' }
      const sent = { headers, signal: reader.signal, ...(body && { method: 'POST', body: JSON.stringify(body) }) }
      const [what] = path.split('?')
      try {
        const response = await fetch(`${system.gateways[0]?.opsUrl}${path}`, sent)
        for await (const part of response.body ?? []) bytes += part.length
        ends.push(`${what} ${response.status}`)
      } catch (error) {
        ends.push(`${what} ${reader.signal.aborted ? 'left' : error}`)
      }
      clearTimeout(timer)
      leaving.delete(reader)
    }

    async function logins(seconds: number): Promise<Visit[]> {
      const visits = await arrivals(system.people(), { perSecond: PER_SECOND, seconds })
      trial.visits.push(...visits)
      return visits
    }

    await logins(WARM_UP_S)
    const calm = await logins(CALM_S)
    let isOver = false
    const operators = Object.entries(reads).map(async ([operator, nth]) => {
      for (let n = 0; !isOver; n++) {
        await read(operator, nth(n))
        await sleep(PAUSE_MS)
      }
    })
    const beside = await logins(READING_S)
    isOver = true
    for (const reader of leaving) reader.abort()
    await Promise.all(operators)
    const locked = query(databaseUrl, `BEGIN; LOCK TABLE audit_events; SELECT pg_sleep(${LOCKED_S}); COMMIT`)
    const isLocked = () => query(databaseUrl, LOCKS).then(({ length }) => length > 0)
    await until(isLocked, { what: 'a lock of the audit' })
    const pages = Array.from({ length: PAGES_BEHIND_LOCK }, (_, n) => read(`behind ${n}`, { path: '/audit.json' }))
    const behind = await logins(LOCKED_S)
    await Promise.all([locked, ...pages])

    trial.figure(`${countBy(ends)}; ${(bytes / 1e6).toFixed(0)} MB`)
    const times = (visits: Visit[]) => [0.5, 0.9, 0.99].map((part) => tookAt(visits, part).toFixed(0)).join(', ')
    const most = tookAt(calm, 0.5) + MEDIAN_EXTRA_MS
    trial.expectFigure(
      tookAt(beside, 0.5) <= most && tookAt(behind, 0.5) <= most,
      `p50, p90, p99 of logins ${times(calm)} ms; beside reads ${times(beside)}; beside the lock ${times(behind)}`,
    )
    trial.expectAllAnswered()
  },
}
