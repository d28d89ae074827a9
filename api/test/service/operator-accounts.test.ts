// What operators see of an account and do to it: each change is in the audit, with a name and a reason.
import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { until } from '@spillway/infra/processes/until'
import { test } from 'vitest'
import { delayStrangers } from '../account.ts'
import { assertProblem, expect, fetchPatiently, NEXT, newCredentials, respondAsync } from '../client.ts'
import { startMailServer } from '../mail-server.ts'
import { Operator, told } from '../operators.ts'
import { shareSystem } from '../system.ts'

const mails = await startMailServer()
const system = await shareSystem()
const key = randomBytes(32).toString('base64')
const services = { SERVICE_KEYS: `shop:${key}`, SERVICE_PORT: '0' }
const [here, there] = await Promise.all([
  system.gateway({ ...mails.env, ...services, GUESSES_PER_ACCOUNT: '2' }),
  system.gateway(mails.env),
])
const { api } = here
const operator = new Operator(here.opsUrl)
const { database } = system

/** An account with one session, whose first mail is sent, and its state. */
async function signedIn() {
  const { account, ...tokens } = await api.signedIn()
  const find = async () => told(200, await operator.find(account.email))
  await until(async () => (await find()).unsentMails?.length === 0, { what: 'the sent mail' })
  return { ...account, ...tokens, id: (await find()).id }
}

async function eventsOf(userId: string, event: string) {
  const find = () => database.auditEvent.findMany({ where: { userId, event, NOT: { operator: null } } })
  await until(async () => (await find()).length > 0, { what: `${event} in the audit` })
  return (await find()).map(({ outcome, reason, operator }) => ({ outcome, reason, operator }))
}

/** How the redemption of a ticket was recorded. */
async function outcomeOf({ requestId }: { requestId: string }): Promise<string> {
  const where = { requestId, event: 'login' }
  return (await until(() => database.auditEvent.findFirst({ where }), { what: 'a login in the audit' })).outcome
}

const isActive = async (token: string): Promise<boolean> => {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/x-www-form-urlencoded' }
  const answer = await fetchPatiently(`${here.serviceUrl}/v1/introspect`, {
    method: 'POST',
    headers,
    body: `token=${token}`,
  })
  const { active }: { active: boolean } = JSON.parse(await answer.text())
  return active
}

test('an account is found by its address in any case and by its id, and says all but secrets', async () => {
  const { email, id } = await signedIn()
  const logins = { userId: id, event: 'login' }
  const { at } = await until(() => database.auditEvent.findFirst({ where: logins }), { what: 'the login in the audit' })
  const found = [await operator.find(` ${email.toUpperCase()} `), await operator.find(id)]
  const one = await operator.call('GET', `/v1/accounts/${id}`)
  for (const answer of [...found, one]) assert.deepEqual(told(200, answer), told(200, one))
  const { sessions, createdAt, lastLoginAt, ...state } = told(200, one)
  assert.deepEqual(state, {
    ...{ id, email, confirmedAt: null, disabledAt: null, hash: 'argon2id, m=1024,t=1,p=1' },
    failures: { failures: 0, waitUntil: null, failedDevices: 0 },
    unsentMails: [],
  })
  assert.equal(sessions.length, 1)
  const [session] = sessions
  // The session is opened by PostgreSQL's clock.
  const latest = [at.toISOString(), session?.createdAt ?? ''].sort().at(-1)
  assert.deepEqual([session?.address, lastLoginAt], ['127.0.0.1', latest])
  assert.ok(Date.parse(createdAt) <= Date.parse(lastLoginAt ?? ''))
  const { passwordHash } = await database.user.findUniqueOrThrow({ where: { id } })
  assert.ok(!JSON.stringify(one.body).includes(passwordHash))
})

test.each(['nobody@example.test', randomUUID(), 'nonsense', ''])('there is no account %j', async (account) => {
  assertProblem(await operator.find(account), 404, 'account_not_found')
})

test('failures are shown, with the time of the next login, and forgotten at every gateway', async () => {
  const { email, id, password } = await signedIn()
  const failures = async () => told(200, await operator.find(id)).failures
  for (let n = 0; n < 2; n += 1) expect(401, await api.login({ email, password: 'wrong' }))
  await until(async () => (await failures()).failures === 2)
  await delayStrangers(system, email)
  assert.ok(Date.parse((await failures()).waitUntil ?? '') > Date.now())
  assertProblem(await api.login({ email, password }), 429, 'too_many_requests')
  assert.ok(told(200, await operator.on(id, 'forget-failures')).changed >= 1)
  assert.equal((await failures()).failures, 0)
  expect(200, await api.login({ email, password }))
  assert.deepEqual(await eventsOf(id, 'forget_failures'), [
    { outcome: 'ok', reason: 'asked by telephone', operator: 'operator' },
  ])
})

test('ending all sessions ends refreshing and introspection, makes devices unknown, and voids tickets', async () => {
  const { email, password, id, accessToken, refreshToken, deviceToken } = await signedIn()
  expect(200, await api.login({ email, password }))
  const { ticket } = expect(202, await api.login({ email, password }, respondAsync))
  const { token } = await mails.next(email, /Confirm your e-mail/)
  assert.equal(await isActive(accessToken), true)
  assert.deepEqual(told(200, await operator.on(id, 'end-sessions')), { changed: 2 })
  assert.equal(await isActive(accessToken), false)
  for (const { api } of [here, there]) assertProblem(await api.refresh(refreshToken), 401, 'invalid_refresh_token')
  const redeemed = await api.redeem(ticket)
  assertProblem(redeemed, 401, 'invalid_credentials')
  assert.equal(await outcomeOf(redeemed), 'sessions_ended')
  assertProblem(await api.confirmEmail(token), 400, 'invalid_mail_token')
  const before = await database.user.findUniqueOrThrow({ where: { id } })
  assert.equal(before.credentialVersion, 2)
  await delayStrangers(system, email)
  const known = { headers: { 'spillway-device': deviceToken } }
  assert.equal((await api.login({ email, password }, known)).status, 429)
  assert.equal((await eventsOf(id, 'end_all_sessions')).length, 1)
})

test('one session ends, and no other; a session of somebody else is not found', async () => {
  const { id, refreshToken, ...credentials } = await signedIn()
  const other = await signedIn()
  const sessionId = told(200, await operator.find(id)).sessions[0]?.id
  const second = expect(200, await api.login({ email: credentials.email, password: credentials.password }))
  assertProblem(await operator.on(other.id, 'end-session', { sessionId }), 404, 'session_not_found')
  assert.deepEqual(told(200, await operator.on(id, 'end-session', { sessionId })), { changed: 1 })
  assertProblem(await api.refresh(refreshToken), 401, 'invalid_refresh_token')
  expect(200, await api.refresh(second.refreshToken))
})

test('a disabled account is let in nowhere, as if the password were wrong, until it is enabled', async () => {
  const { id, refreshToken, accessToken, ...account } = await signedIn()
  const credentials = { email: account.email, password: account.password }
  const { ticket } = expect(202, await api.login(credentials, respondAsync))
  expect(204, await api.forgotten(account.email))
  const [confirm, reset] = [/Confirm your e-mail/, /Choose a new password/]
  const links = [await mails.next(account.email, confirm), await mails.next(account.email, reset)] as const
  const wrong = await api.login({ ...credentials, password: 'not the one' })
  assert.deepEqual(told(200, await operator.on(id, 'disable')), { changed: 1 })
  assert.deepEqual(told(200, await operator.on(id, 'disable')), { changed: 0 })
  const refused = await there.api.login(credentials)
  assert.deepEqual([refused.status, refused.body], [wrong.status, wrong.body])
  const redeemed = await api.redeem(ticket)
  assertProblem(redeemed, 401, 'invalid_credentials')
  assert.equal(await outcomeOf(redeemed), 'account_disabled')
  expect(401, await api.refresh(refreshToken))
  expect(401, await api.me(accessToken))
  const byLinks = [await api.confirmEmail(links[0].token), await api.resetPassword(links[1].token)]
  for (const answer of byLinks) assertProblem(answer, 400, 'invalid_mail_token')
  assertProblem(await operator.on(id, 'send-reset'), 409, 'account_is_disabled')
  expect(204, await api.forgotten(account.email))
  const state = told(200, await operator.find(id))
  assert.ok(Date.parse(state.disabledAt ?? '') <= Date.now())
  assert.deepEqual(state.sessions, [])
  assert.deepEqual(told(200, await operator.on(id, 'enable')), { changed: 1 })
  told(200, await operator.on(id, 'forget-failures'))
  expect(200, await api.login(credentials))
  assert.equal(mails.to(account.email).filter(({ subject }) => reset.test(subject)).length, 1)
  assert.equal((await eventsOf(id, 'enable_account')).length, 1)
  const disabled = (await eventsOf(id, 'disable_account')).map(({ outcome }) => outcome)
  assert.deepEqual(disabled.sort(), ['ok', 'unchanged'])
})

test('links are mailed, within the limit of their reader, and not where no mail is sent', async () => {
  const { email, id } = await signedIn()
  assert.deepEqual(told(200, await operator.on(id, 'send-reset')), { changed: 1 })
  const { token } = await mails.next(email, /Choose a new password/)
  expect(200, await api.resetPassword(token))
  expect(200, await api.login({ email, password: NEXT }))
  told(200, await operator.on(id, 'send-confirmation'))
  expect(204, await api.confirmEmail((await mails.next(email, /Confirm your e-mail/, 1)).token))
  assert.notEqual(told(200, await operator.find(id)).confirmedAt, null)
  const limited = await system.gateway({ ...mails.env, LIMIT_MAIL_PER_RECIPIENT: '1' })
  const sparing = new Operator(limited.opsUrl)
  assertProblem(await sparing.on(id, 'send-reset'), 429, 'too_many_mails')
  await until(async () =>
    (await eventsOf(id, 'request_password_reset')).some((one) => one.outcome === 'too_many_mails'),
  )
  // The address is changed, although no link can be sent to it.
  for (const address of [newCredentials().email, email])
    assert.deepEqual(told(200, await sparing.on(id, 'change-email', { email: address })), { changed: 1 })
  await until(async () =>
    (await eventsOf(id, 'request_email_confirmation')).some((one) => one.outcome === 'too_many_mails'),
  )
  const mute = await system.gateway()
  assertProblem(await new Operator(mute.opsUrl).on(id, 'send-reset'), 403, 'mail_off')
})

test('an address is changed at once: the old one is told, the new one is asked, and older links are void', async () => {
  const { email, id, password } = await signedIn()
  told(200, await operator.on(id, 'send-reset'))
  const { token } = await mails.next(email, /Choose a new password/)
  const next = newCredentials().email
  assert.deepEqual(told(200, await operator.on(id, 'change-email', { email: next.toUpperCase() })), { changed: 1 })
  assertProblem(await api.resetPassword(token), 400, 'invalid_mail_token')
  expect(401, await api.login({ email, password }))
  expect(200, await api.login({ email: next, password }))
  await mails.next(email, /was changed/)
  expect(204, await api.confirmEmail((await mails.next(next, /Confirm your e-mail/)).token))
  const other = await api.newAccount()
  assertProblem(await operator.on(id, 'change-email', { email: other.email }), 409, 'email_taken')
  assertProblem(await operator.on(id, 'change-email', { email: 'nonsense' }), 422, 'invalid_request')
  const last = newCredentials().email
  told(200, await operator.on(id, 'change-email', { email: last, confirmed: true }))
  assert.notEqual(told(200, await operator.find(last)).confirmedAt, null)
})

test('an export has the account, its sessions, links and events, and no secret', async () => {
  const { email, id, refreshToken } = await signedIn()
  expect(401, await api.login({ email, password: 'wrong' }))
  await until(() => database.auditEvent.findFirst({ where: { userId: id, outcome: 'wrong_password' } }))
  const exported = told(200, await operator.on(id, 'export'))
  const { account, sessions, links, mails: waiting, audit } = exported
  assert.deepEqual([account.email, sessions.length, sessions[0]?.address], [email, 1, '127.0.0.1'])
  assert.deepEqual([links[0]?.purpose, links[0]?.email], ['confirm', email])
  assert.ok(audit.some(({ outcome, isKnownDevice }) => outcome === 'wrong_password' && isKnownDevice === false))
  assert.deepEqual(waiting, [])
  const { passwordHash } = await database.user.findUniqueOrThrow({ where: { id } })
  for (const secret of [passwordHash, refreshToken]) assert.ok(!JSON.stringify(exported).includes(secret))
  assert.equal((await eventsOf(id, 'export_account')).length, 1)
})

test('an export has every link, session and event of an account with many, page after page', async () => {
  const { id } = await signedIn()
  await database.$executeRaw`
    INSERT INTO sessions (id, user_id, expires_at, idle_ends_at, family_hash, token_hash)
    SELECT gen_random_uuid(), ${id}::uuid, now(), now(), '', '' FROM generate_series(1, 999)`
  await database.$executeRaw`
    INSERT INTO audit_events (id, at, event, outcome, user_id)
    SELECT gen_random_uuid(), now(), 'login', 'ok', ${id}::uuid FROM generate_series(1, 1200)`
  await database.$executeRaw`
    INSERT INTO mail_tokens (id, token_hash, purpose, user_id, email, credential_version, expires_at)
    SELECT gen_random_uuid(), sha256(n::text::bytea), 'change', ${id}::uuid, 'new@example.test', 1, now() FROM generate_series(1, 300) AS n`
  const { sessions, audit, links } = told(200, await operator.on(id, 'export'))
  assert.equal(new Set(sessions.map((session) => session.id)).size, 1_000)
  assert.ok(audit.length >= 1_200, `${audit.length} events`)
  assert.equal(links.filter(({ email }) => email === 'new@example.test').length, 300)
})

test.each(['', ' ', 'x'.repeat(257)])('a change without a reason is refused: %j', async (reason) => {
  const { id } = await signedIn()
  assertProblem(await operator.on(id, 'disable', { reason }), 422, 'invalid_request')
  assert.equal(told(200, await operator.find(id)).disabledAt, null)
})

interface Described {
  operationId: string
  'x-role'?: string
  responses: object
}

test('the description has every call, its role, and no call without an operationId', async () => {
  const document: { info: { title: string }; paths: Record<string, Record<string, Described>> } = JSON.parse(
    await (await fetch(`${here.opsUrl}/openapi.json`)).text(),
  )
  assert.equal(document.info.title, 'Spillway operators')
  const calls = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId }]) => `${method} ${path} ${operationId}`),
  )
  assert.deepEqual(
    calls.filter((call) => call.includes('undefined')),
    [],
  )
  assert.ok(calls.includes('post /v1/accounts/{id}/delete deleteAccount'), calls.join('\n'))
  const least = { '/v1/accounts/find': 'viewer', '/v1/accounts/{id}/disable': 'support', '/v1/blocks': 'admin' }
  for (const [path, role] of Object.entries(least)) assert.equal(document.paths[path]?.post?.['x-role'], role, path)
  assert.deepEqual(
    Object.values(document.paths['/v1/jobs/{requestId}'] ?? {}).map(({ responses }) => Object.keys(responses)),
    [['200', '401', '403', '404', '429', '500', '503']],
  )
  assert.ok(!calls.some((call) => call.includes('/queues')))
})
