// The audit's search: what is found, how a person reads it, and what exports hold.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { newId } from '@spillway/queue/wire/id'
import { test } from 'vitest'
import { insertEvents, type StoredEvent } from '../../src/audit/store.ts'
import { describeEvent } from '../../src/ops/audit.ts'
import { atOnce, expect, fetchPatiently, newCredentials } from '../client.ts'
import { openSystem } from '../system.ts'

const system = await openSystem()
await system.worker()
const { database } = system
const limits = { LIMIT_PER_ACCOUNT: '0', GUESSES_PER_ACCOUNT: '2', GUESSES_PER_DEVICE: '3' }
const { api, opsUrl } = await system.gateway(limits)

interface Found {
  now: string | null
  events: (StoredEvent & { sentence: string })[]
  next: string | null
}

async function get(path: string, query: Record<string, string>): Promise<string> {
  const response = await fetchPatiently(`${opsUrl}/${path}?${new URLSearchParams(query)}`)
  const text = await response.text()
  assert.equal(response.status, 200, text)
  return text
}
const find = async (query: Record<string, string>): Promise<Found> => JSON.parse(await get('audit.json', query))
/** The latest sentence of an account, once it has so many events. */
async function latestOf(email: string, length: number): Promise<string> {
  const found = await until(async () => {
    const { events } = await find({ q: email })
    return events.length === length ? events : undefined
  })
  return found[0]?.sentence ?? ''
}

test('a person reads why a login failed, and how many more may fail', async () => {
  const account = await api.newAccount()
  const { deviceToken } = expect(200, await api.login(account))
  const wrong = { ...account, password: 'a wrong pass phrase' }
  assert.equal((await api.login(wrong)).status, 401)
  assert.equal(await latestOf(account.email, 3), 'Login: wrong password, from an unknown device, 1 of 2 before a pause')
  const headers = { 'spillway-device': deviceToken }
  for (const failures of [1, 2]) {
    assert.equal((await api.login(wrong, { headers })).status, 401)
    assert.equal(
      await latestOf(account.email, 3 + failures),
      `Login: wrong password, from a known device, ${failures} of 3 before it counts as unknown`,
    )
  }
})

test('a login that had to wait is found by its account, whose address is not stored', async () => {
  const account = await api.newAccount()
  const wrong = { ...account, password: 'a wrong pass phrase' }
  const answers = await atOnce(8, () => api.login(wrong))
  assert.ok(answers.some(({ status }) => status === 429))
  const { events } = await until(async () => {
    const found = await find({ q: account.email, event: 'rate_limit' })
    return found.events.length > 0 ? found : undefined
  })
  assert.equal(events[0]?.sentence, 'Rate limit: refused for a while: too many wrong passwords for this account')
  const { id } = await database.user.findUniqueOrThrow({ where: { email: account.email } })
  assert.equal(events[0]?.userId, id)
  const columns = await database.$queryRaw`SELECT to_jsonb(audit_events) AS row FROM audit_events`
  assert.ok(!JSON.stringify(columns).includes(account.email))
})

const nothing = { sessionId: null, userId: null, address: null, requestId: null, isKnownDevice: null, failures: null }
const usual = { event: 'login', outcome: 'ok', count: 1, ...nothing, operator: null, reason: null } as const

/** Adds events as they are. */
async function add(events: Partial<StoredEvent>[]): Promise<void> {
  const whole = events.map((event) => {
    const at = event.at ?? new Date().toISOString()
    return { ...usual, id: newId(Date.parse(at)), at, ...event }
  })
  await insertEvents(database, whole)
}

test('events are found by account, network, outcome, operator and time', async () => {
  const { id: userId, email } = await register()
  const by = { operator: 'anna', reason: 'asked by phone' }
  await add([
    { userId, address: '192.0.2.7', outcome: 'wrong_password', at: '2026-03-01T10:00:00Z' },
    { userId, address: '2001:db8:1:2::/64', at: '2026-03-01T11:00:00Z' },
    { userId, event: 'disable_account', ...by, at: '2026-03-02T10:00:00Z' },
  ])
  const day = { from: '2026-03-01', until: '2026-03-02T10:00:00.001Z' }
  const counts = async (query: Record<string, string>) => (await find({ ...day, ...query })).events.length
  for (const [query, expected] of [
    [{}, 3],
    [{ q: email.toUpperCase() }, 3],
    [{ q: ` ${userId} ` }, 3],
    [{ q: '2001:db8:1:2:3:4:5:6' }, 1],
    [{ q: '2001:db8:1:2::/64' }, 1],
    [{ q: '2001:db8:1:3::1' }, 0],
    [{ outcome: 'wrong_password' }, 1],
    [{ operator: 'anna' }, 1],
    [{ event: 'disable_account', q: email }, 1],
    [{ from: '2026-03-01T10:30' }, 2],
    [{ q: 'no address @' }, 0],
  ] as const)
    assert.equal(await counts(query), expected, JSON.stringify(query))
  const { events } = await find({ ...day, operator: 'anna' })
  assert.equal(events[0]?.sentence, 'Disable account: done, by the operator anna, “asked by phone”')
})

async function register() {
  const { id, email } = expect(201, await api.register(newCredentials()))
  return { id, email }
}

test('an export holds every event once, page after page', async () => {
  const { id: userId, email } = await register()
  await add(Array.from({ length: 2_500 }, () => ({ userId, operator: 'anna' })))
  const lines = (await get('audit.ndjson', { q: email, event: 'login' })).trimEnd().split('\n')
  const ids = new Set(lines.map((line) => JSON.parse(line).id))
  assert.deepEqual([lines.length, ids.size], [2_500, 2_500])
})

test('who searches, exports and looks at an account is in the audit, without the address, and not for each page', async () => {
  const { id: userId, email } = await register()
  for (const limit of ['1', '2']) await get('audit.json', { q: email, event: 'refresh_token_reuse', limit })
  await get('audit.ndjson', { q: email, from: '2026-03-01' })
  await get('audit.json', { q: 'nobody@example.test' })
  for (let n = 0; n < 2; n += 1) assert.equal((await fetchPatiently(`${opsUrl}/v1/accounts/${userId}`)).status, 200)
  const ours = [`event=refresh_token_reuse userId=${userId}`, 'an address without an account']
  const exported = `from=2026-03-01T00:00:00.000Z userId=${userId}`
  const where = { OR: [{ reason: { in: [...ours, exported] } }, { event: 'read_account', userId }] }
  await until(async () => (await database.auditEvent.count({ where })) >= 4)
  const rows = await database.auditEvent.findMany({ where })
  assert.deepEqual(rows.map(({ event, operator, reason }) => `${event} ${operator} ${reason}`).sort(), [
    `export_audit operator ${exported}`,
    'read_account operator null',
    `search_audit operator ${ours[1]}`,
    `search_audit operator ${ours[0]}`,
  ])
})

test.each([
  [{ outcome: 'unsupported_hash' }, 'Login: no worker verifies the stored hash of this account'],
  [{ isKnownDevice: true }, 'Login: let in, from a known device'],
  [{ outcome: 'account_disabled', isKnownDevice: false }, 'Login: the account is disabled, from an unknown device'],
  [{ outcome: 'wrong_password', isKnownDevice: false, failures: 7 }, /7 of 10 before a pause$/],
  [{ outcome: 'wrong_password', isKnownDevice: false, failures: 12 }, /12 in a row, with a pause after each$/],
  [{ event: 'rate_limit', outcome: 'guesses_delayed', count: 7 }, /refused for a while.*, 7 times, added up$/],
] as const)('an event reads %o', (given, expected) => {
  const stored = { id: '', at: '', ...usual, ...given }
  const sentence = describeEvent(stored, { guessesPerAccount: 10, guessesPerDevice: 10 })
  if (typeof expected === 'string') assert.equal(sentence, expected)
  else assert.match(sentence, expected)
})

test.each([
  [{ from: '2026-13-01' }, 'from must be a time'],
  [{ until: 'yesterday' }, 'until must be a time'],
  [{ q: 'garbage text' }, 'q must be an e-mail address'],
  [{ outcome: 'nope' }, 'outcome must be equal to one of'],
])('%j finds nothing, and says why, also as a file', async (query: Record<string, string>, sentence) => {
  for (const path of ['audit.json', 'audit.ndjson']) {
    const response = await fetch(`${opsUrl}/${path}?${new URLSearchParams(query)}`)
    const { errors }: { errors: { field: string; message: string }[] } = JSON.parse(await response.text())
    const told = errors.map(({ field, message }) => `${field} ${message}`).join()
    assert.deepEqual([response.status, told.startsWith(sentence)], [422, true], told)
  }
})
