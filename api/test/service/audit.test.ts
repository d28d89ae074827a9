// The audit: what is recorded, who reads it, nobody changes it, and no request waits for it.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { until } from '@spillway/infra/processes/until'
import { newId } from '@spillway/queue/wire/id'
import { test } from 'vitest'
import { Audit } from '../../src/audit/recorder.ts'
import { GatewayMetrics } from '../../src/ops/metrics.ts'
import { assertProblem, Client, expect, fetchPatiently, newCredentials } from '../client.ts'
import { lockOptions, openSystem } from '../system.ts'

interface Recorded {
  id: string
  at: string
  event: string
  outcome: string
  count: number
  userId: string | null
  sessionId: string | null
  address: string | null
}

interface Page {
  events: Recorded[]
  next: string | null
}

const system = await openSystem()
await system.worker()
const { database } = system
const { api, opsUrl } = await system.gateway({ LIMIT_PER_ADDRESS: '0', LIMIT_PER_ACCOUNT: '0', REFRESH_GRACE_S: '0' })

async function read(query: string, from = opsUrl): Promise<Page> {
  const response = await fetchPatiently(`${from}/audit.json${query}`)
  assert.equal(response.status, 200)
  return JSON.parse(await response.text())
}

/** What is recorded of an account, the earliest first, once there are so many events. */
async function trailOf(userId: string, length: number): Promise<Recorded[]> {
  let events: Recorded[] = []
  await until(async () => {
    events = (await read(`?q=${userId}`)).events.reverse()
    return events.length >= length
  })
  return events
}

const outcomes = (events: Recorded[]) => events.map(({ event, outcome }) => `${event} ${outcome}`)
const sessionIdOf = ({ accessToken }: { accessToken: string }): string =>
  JSON.parse(atob(accessToken.split('.')[1] ?? '')).sid

/** A recorder on the database of this file, its counts, and what it says in the log. */
function openRecorder(options: { retentionDays?: number; deletePeriodMs?: number } = {}) {
  const metrics = new GatewayMetrics([])
  const said: string[] = []
  const say = (_details: unknown, message = ''): void => void said.push(message)
  const log = { warn: say, info: say }
  const audit = new Audit({ database, retentionDays: 90, metrics, log, ...options })
  const counted = async (result: string) =>
    (await metrics.auditEvents.get()).values.find(({ labels }) => labels.result === result)?.value
  return { audit, counted, said }
}

/** Hides the table while the body runs, so that nothing can be written or read. */
async function withoutTable(body: () => Promise<void>): Promise<void> {
  await database.$executeRaw`ALTER TABLE audit_events RENAME TO audit_events_away`
  try {
    await body()
  } finally {
    await database.$executeRaw`ALTER TABLE audit_events_away RENAME TO audit_events`
  }
}

/** An event of a user that never was, so long ago. */
async function oldEvent(userId: string, ageMs: number): Promise<void> {
  const at = new Date(Date.now() - ageMs)
  const data = { id: newId(at.getTime()), at, event: 'login', outcome: 'ok', userId }
  await database.auditEvent.create({ data })
}

test('the life of an account is recorded: who, what, when, from where, with which outcome, and no secret', async () => {
  const account = newCredentials()
  const newPassword = newCredentials().password
  const startedMs = Date.now()
  const { id: userId } = expect(201, await api.register(account))
  const wrong = { ...account, password: newCredentials().password }
  expect(401, await api.login(wrong))
  const [first, second, third] = [
    expect(200, await api.login(account)),
    expect(200, await api.login(account)),
    expect(200, await api.login(account)),
  ]
  const token = first.accessToken
  const verify = (password: string) => api.call('POST', '/v1/me/password/verify', { token, body: { password } })
  expect(401, await verify(wrong.password))
  expect(204, await verify(account.password))
  expect(204, await api.call('DELETE', `/v1/me/sessions/${sessionIdOf(second)}`, { token }))
  expect(204, await api.call('DELETE', '/v1/me/sessions', { token }))
  // There is no other one left to end.
  expect(204, await api.call('DELETE', '/v1/me/sessions', { token }))
  expect(204, await api.changePassword(token, account.password, newPassword))
  const fourth = expect(200, await api.login({ ...account, password: newPassword }))
  expect(200, await api.refresh(fourth.refreshToken))
  expect(401, await api.refresh(fourth.refreshToken))
  expect(204, await api.logout(first.refreshToken))

  const trail = await trailOf(userId, 13)
  assert.deepEqual(outcomes(trail), [
    'register ok',
    'login wrong_password',
    'login ok',
    'login ok',
    'login ok',
    'verify_password wrong_password',
    'verify_password ok',
    'end_session ok',
    'end_other_sessions ok',
    'change_password ok',
    'login ok',
    'refresh_token_reuse refresh_token_reused',
    'logout ok',
  ])
  const sessions = [first, second, third, fourth].map(sessionIdOf)
  const [one, two, three, four] = sessions
  const ofSessions = trail.map(({ sessionId }) => sessionId)
  assert.deepEqual(ofSessions, [null, null, one, two, three, one, one, two, one, one, four, four, one])
  for (const { at, address, count } of trail) {
    assert.deepEqual({ address, count }, { address: '127.0.0.1', count: 1 })
    assert.ok(Date.parse(at) >= startedMs && Date.parse(at) <= Date.now())
  }

  const rows = JSON.stringify(await database.$queryRaw`SELECT audit_events::text FROM audit_events`)
  const tokens = [first, second, third, fourth].flatMap(({ accessToken, refreshToken }) => [accessToken, refreshToken])
  for (const secret of [account.email, account.password, wrong.password, newPassword, ...tokens])
    assert.ok(!rows.includes(secret))
})

test('who is nobody is not named: a login on an unknown address', async () => {
  const unknown = newCredentials()
  expect(401, await api.login(unknown))
  const find = async () => (await read('?event=login')).events.find(({ outcome }) => outcome === 'unknown_account')
  await until(async () => (await find()) !== undefined)
  const row = await find()
  assert.deepEqual({ userId: row?.userId, sessionId: row?.sessionId }, { userId: null, sessionId: null })
  const rows = JSON.stringify(await database.$queryRaw`SELECT audit_events::text FROM audit_events`)
  assert.ok(!rows.includes(unknown.email))
})

test('pages go from the latest to the earliest, by user and by event, each event once', async () => {
  const userId = randomUUID()
  for (const hours of [5, 4, 3, 2, 1]) await oldEvent(userId, hours * 3_600_000)
  const other = { id: newId(Date.now()), at: new Date(), event: 'logout', outcome: 'ok', userId }
  await database.auditEvent.create({ data: other })
  const pages: Page[] = []
  let before = ''
  do {
    const page = await read(`?q=${userId}&event=login&limit=2${before}`)
    pages.push(page)
    before = `&before=${page.next}`
  } while (pages.at(-1)?.next)
  const lengths = pages.map(({ events }) => events.length)
  assert.deepEqual(lengths, [2, 2, 1])
  const times = pages.flatMap(({ events }) => events.map(({ at }) => at))
  assert.deepEqual(times, times.toSorted().reverse())
  assert.equal(new Set(times).size, 5)
  assert.equal((await read(`?q=${userId}`)).events.length, 6)
  for (const query of ['?from=0001-01-01', '?until=1969-12-31']) await read(query)
  for (const query of ['?event=x', '?before=x', '?limit=501', '?limit=0', '?usr=x']) {
    const response = await fetch(`${opsUrl}/audit.json${query}`)
    assert.equal(response.status, 422, query)
  }
})

test('the database refuses to change events, to empty the table, and to delete an event of the last day', async () => {
  const userId = randomUUID()
  await oldEvent(userId, 23 * 3_600_000)
  await oldEvent(userId, 25 * 3_600_000)
  const refused = /append-only/
  await assert.rejects(database.$executeRaw`UPDATE audit_events SET outcome = 'ok'`, refused)
  await assert.rejects(database.$executeRaw`TRUNCATE audit_events`, refused)
  await assert.rejects(database.$executeRaw`DELETE FROM audit_events WHERE user_id = ${userId}::uuid`, refused)
  assert.equal(await database.auditEvent.count({ where: { userId } }), 2)
})

test('events older than the retention are deleted, by several at once, and no younger ones', async () => {
  const userId = randomUUID()
  const dayMs = 24 * 3_600_000
  for (const days of [9, 11]) await oldEvent(userId, days * dayMs)
  await database.$executeRaw`
    INSERT INTO audit_events (id, at, event, outcome, user_id)
    SELECT overlay(gen_random_uuid()::text PLACING '00000000-0000' FROM 1)::uuid, now() - interval '20 days', 'login', 'ok', ${userId}::uuid
    FROM generate_series(1, 4500)`
  const recorders = [1, 2].map(() => openRecorder({ retentionDays: 10, deletePeriodMs: 20 }))
  await until(async () => (await database.auditEvent.count({ where: { userId } })) === 1)
  await Promise.all(recorders.map(({ audit }) => audit.close()))
  assert.equal(await database.auditEvent.count({ where: { userId } }), 1)
})

test('while events cannot be written logins go on, and their events are written later', async () => {
  const account = await api.newAccount()
  await withoutTable(async () => {
    for (let n = 0; n < 5; n += 1) expect(200, await api.login(account))
  })
  const { id } = await database.user.findUniqueOrThrow({ where: { email: account.email } })
  assert.deepEqual(outcomes(await trailOf(id, 6)), ['register ok', ...Array<string>(5).fill('login ok')])
})

test('events whose writing failed are kept and written once, and both are said; a metric has the age of the oldest', async () => {
  const { audit, counted, said } = openRecorder()
  const userId = randomUUID()
  assert.equal(audit.oldestMs(), 0)
  await withoutTable(async () => {
    for (let n = 0; n < 3; n += 1)
      audit.record({ event: 'login', outcome: 'ok', userId, ip: '192.0.2.1', requestId: 'r' })
    await until(() => said.length > 0)
    assert.ok(audit.oldestMs() > 0)
  })
  await until(() => said.length > 1)
  assert.equal(audit.oldestMs(), 0)
  assert.deepEqual(said, [
    'audit events cannot be written: they are kept while there is room',
    'audit events are written again',
  ])
  assert.equal(await database.auditEvent.count({ where: { userId } }), 3)
  await withoutTable(async () => {
    audit.record({ event: 'login', outcome: 'ok', userId, ip: '192.0.2.1', requestId: 'r' })
    await audit.close()
  })
  assert.equal(said.at(-1), 'the last audit events were not written')
  assert.deepEqual([await counted('written'), await counted('dropped')], [3, 1])
})

test('what the buffer has no room for is counted, and the first events are kept', async () => {
  const { audit, counted, said } = openRecorder()
  const userId = randomUUID()
  await withoutTable(async () => {
    for (let n = 0; n < 10_050; n += 1)
      audit.record({ event: 'login', outcome: 'ok', userId, ip: '192.0.2.1', requestId: 'r' })
    assert.equal(await counted('dropped'), 50)
  })
  await audit.close()
  assert.ok(said.includes('audit events were dropped: there was no room for them'))
  assert.equal(await counted('written'), 10_000)
  assert.equal(await database.auditEvent.count({ where: { userId } }), 10_000)
})

test('if PostgreSQL refuses an event, only this event is lost, and it is counted and logged', async () => {
  const { audit, counted, said } = openRecorder()
  const userId = randomUUID()
  const event = { event: 'pause_queue', outcome: 'ok', userId, ip: '192.0.2.1', requestId: 'r' } as const
  for (const reason of ['before', 'a\0b', 'a\ud800b', 'after']) audit.record({ ...event, operator: 'anna', reason })
  await audit.close()
  const rows = await database.auditEvent.findMany({ where: { userId }, orderBy: { id: 'asc' } })
  assert.deepEqual(rows.map(({ reason }) => reason).sort(), ['after', 'before'])
  assert.deepEqual([await counted('written'), await counted('dropped')], [2, 2])
  assert.deepEqual(said, Array(2).fill('an audit event was refused and is lost'))
})

test('a flood of refusals is a thousand rows and one for the rest, which says how many; changes by operators stay rows', async () => {
  const { audit, counted } = openRecorder()
  const address = '198.51.100.7'
  const flood = { event: 'rate_limit', outcome: 'address_limit' } as const
  for (let n = 0; n < 50_000; n += 1) audit.record({ ...flood, ip: address, requestId: 'r' })
  const by = { operator: randomUUID() }
  for (const outcome of ['unchanged', 'outcome_unknown'] as const)
    audit.record({ event: 'disable_account', outcome, ...by, ip: address, requestId: 'r' })
  await audit.close()
  assert.equal(await database.auditEvent.count({ where: by }), 2)
  const rows = await database.auditEvent.findMany({ where: flood })
  const named = rows.filter((row) => row.address === address).length
  const [sum, ...more] = rows.filter((row) => row.address === null)
  assert.ok(named >= 1_000 && named < 2_000, `${named} rows`)
  assert.deepEqual(more, [])
  assert.equal(named + (sum?.count ?? 0), 50_000)
  assert.equal(await counted('added_up'), sum?.count)
})

test('operators who search behind a lock keep nobody from logging in, and each has one query at a time', async () => {
  const gateway = await system.gateway({ DATABASE_POOL_SIZE: '3' })
  const account = await gateway.api.newAccount()
  let pages: Promise<unknown>[] = []
  await database.$transaction(async (transaction) => {
    await transaction.$executeRaw`LOCK TABLE audit_events`
    pages = Array.from({ length: 12 }, () => fetch(`${gateway.opsUrl}/audit.json`))
    const reading = () => database.$queryRaw<unknown[]>`
        SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
        AND query LIKE '%FROM audit_events WHERE%'`
    await until(async () => (await reading()).length > 0)
    for (let n = 0; n < 3; n += 1) expect(200, await gateway.api.login(account))
    // There is a moment between two.
    assert.ok((await reading()).length <= 1)
  }, lockOptions)
  await Promise.all(pages)
})

test('events of the last moment are written when a gateway stops', async () => {
  const gateway = await system.gateway()
  const account = await gateway.api.newAccount()
  expect(200, await gateway.api.login(account))
  await gateway.close()
  const { id } = await database.user.findUniqueOrThrow({ where: { email: account.email } })
  assert.deepEqual(outcomes((await read(`?q=${id}`)).events), ['login ok', 'register ok'])
})

test('turned off, nothing is recorded and there is no page', async () => {
  const gateway = await system.gateway({ AUDIT_RETENTION_DAYS: '0' })
  const account = await gateway.api.newAccount()
  assertProblem(await new Client(gateway.opsUrl).call('GET', '/audit.json'), 404, 'not_found')
  assert.doesNotMatch(await (await fetch(gateway.opsUrl)).text(), /audit|\{\{/)
  await gateway.close()
  const { id } = await database.user.findUniqueOrThrow({ where: { email: account.email } })
  assert.deepEqual((await read(`?q=${id}`)).events, [])
})
