// The connection to PostgreSQL ends during a COMMIT, and PostgreSQL completes the COMMIT. The gateway
// finds out the outcome, or reports it as unknown.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { decodeJwt } from 'jose'
import { test } from 'vitest'
import { type Answer, assertProblem, expect, keepTicket, NEXT, newCredentials, respondAsync } from '../client.ts'
import { startMailServer } from '../mail-server.ts'
import { Operator, told } from '../operators.ts'
import { heldAnyway, lockOptions, locksAwaited, ofFile, openSystem } from '../system.ts'

const mails = await startMailServer()
const system = await openSystem()
await system.worker()
const { database } = system
const { api, opsUrl, proxy } = await system.behindProxy(ofFile, 'DATABASE_URL', mails.env, heldAnyway)
const operator = new Operator(opsUrl)
const direct = await system.gateway(mails.env)

// A COMMIT of these tables waits while a test holds the lock.
await database.$executeRaw`
  CREATE FUNCTION wait_for_test() RETURNS trigger LANGUAGE plpgsql AS
  'BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NULL; END'`
for (const table of ['users', 'sessions', 'used_tickets'])
  await database.$executeRawUnsafe(`
    CREATE CONSTRAINT TRIGGER waiting AFTER INSERT OR UPDATE OR DELETE ON ${table} DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION wait_for_test()`)

/** Makes a change whose connection ends, by `end`, while its COMMIT waits. */
async function losing<T>(change: () => Promise<T>, end = proxy.cut): Promise<T> {
  const changing = await database.$transaction(async (holder) => {
    await holder.$executeRaw`SELECT FROM pg_advisory_xact_lock(1)`
    const changing = change()
    await until(() => locksAwaited(database))
    end()
    return { answer: changing }
  }, lockOptions)
  return await changing.answer
}

const users = (where: object) => database.user.count({ where })

const eventsOf = (requestId: string) => database.auditEvent.findMany({ where: { requestId }, orderBy: { id: 'asc' } })

async function outcomesOf({ requestId }: { requestId: string }, count = 1): Promise<string[]> {
  await until(async () => (await eventsOf(requestId)).length >= count)
  return (await eventsOf(requestId)).map(({ outcome }) => outcome)
}

/** The outcome that was found out. A gateway that cannot connect again at once records an unknown one before it. */
async function foundOutcomesOf({ requestId }: { requestId: string }): Promise<string[]> {
  const found = async () => (await eventsOf(requestId)).filter(({ outcome }) => outcome !== 'outcome_unknown')
  await until(async () => (await found()).length > 0)
  return (await found()).map(({ outcome }) => outcome)
}

test('a password is changed once, and a mail notifies its owner', async () => {
  const { account, accessToken } = await direct.api.signedIn()
  expect(204, await losing(() => api.changePassword(accessToken, account.password)))
  expect(200, await api.login({ ...account, password: NEXT }))
  await mails.next(account.email, /password was changed/)
  assert.equal(await users({ email: account.email, credentialVersion: 2 }), 1)
})

test('while the database is unavailable, the outcome is recorded as unknown, and a redemption of the ticket finds it out', async () => {
  const { account, accessToken } = await direct.api.signedIn()
  const held = await losing(() => api.changePassword(accessToken, account.password, NEXT, keepTicket), proxy.refuse)
  const { ticket } = expect(202, held)
  proxy.restore()
  const redeemed = await api.redeem(ticket)
  expect(204, redeemed)
  assert.deepEqual(await outcomesOf(redeemed, 2), ['outcome_unknown', 'ok'])
})

test('a registration succeeds, with mail and without', async () => {
  const account = newCredentials()
  expect(201, await losing(() => api.register(account)))
  const { token } = await mails.next(account.email, /Confirm your e-mail/)
  expect(204, await api.confirmEmail(token))
  const mute = await system.behindProxy(ofFile, 'DATABASE_URL')
  const other = newCredentials()
  const { id } = expect(201, await losing(() => mute.api.register(other), mute.proxy.cut))
  assert.equal(await users({ id, email: other.email }), 1)
})

test('a password is reset once', async () => {
  const { email } = await direct.api.newAccount()
  expect(204, await direct.api.forgotten(email))
  const { token } = await mails.next(email, /Choose a new password/)
  expect(200, await losing(() => api.resetPassword(token)))
  await mails.next(email, /password was changed/)
  expect(200, await api.login({ email, password: NEXT }))
})

test('a login has one session with a valid token, also if its ticket was marked as used', async () => {
  const account = await direct.api.newAccount()
  const { refreshToken } = expect(200, await losing(() => api.login(account)))
  expect(200, await api.refresh(refreshToken))
  const { ticket } = expect(202, await api.login(account, respondAsync))
  // The mark waits first, then the session.
  expect(200, await losing(() => api.redeem(ticket)))
  assertProblem(await api.redeem(ticket), 409, 'ticket_used')
  assert.equal(await database.session.count({ where: { user: { email: account.email } } }), 2)
})

test('an owner and an operator can delete an account, and a mail notifies the owner', async () => {
  const { account, accessToken } = await direct.api.signedIn()
  const erased = await losing(() => api.deleteAccount(accessToken, account.password))
  expect(204, erased)
  assert.deepEqual(await foundOutcomesOf(erased), ['ok'])
  await mails.next(account.email, /was deleted/)
  const { email } = await direct.api.newAccount()
  const { id } = told(200, await operator.find(email))
  const deleted = await losing(() => operator.on(id, 'delete'))
  assert.deepEqual(told(200, deleted), { changed: 1 })
  assert.deepEqual(await outcomesOf(deleted), ['ok'])
  assert.equal(await users({ email: { in: [email, account.email] } }), 0)
})

test('an outcome that cannot be found out is reported and recorded as unknown', async () => {
  const { account, accessToken, refreshToken } = await direct.api.signedIn()
  const { sub, sid: own } = decodeJwt(accessToken)
  const { sid } = decodeJwt(expect(200, await direct.api.login(account)).accessToken)
  expect(200, await direct.api.login(account))
  const { email } = await direct.api.newAccount()
  const { token } = await mails.next(email, /Confirm your e-mail/)
  const { id } = told(200, await operator.find(email))
  const answers: [Answer & { requestId: string }, userId: unknown, sessionId: unknown][] = [
    [await losing(() => api.confirmEmail(token)), id, null],
    [await losing(() => operator.on(id, 'disable')), id, null],
    [await losing(() => api.call('DELETE', `/v1/me/sessions/${sid}`, { token: accessToken })), sub, sid],
    [await losing(() => api.call('DELETE', '/v1/me/sessions', { token: accessToken })), sub, own],
    [await losing(() => api.logout(refreshToken)), sub, own],
  ]
  for (const [answer, userId, sessionId] of answers) {
    assertProblem(answer, 503, 'outcome_unknown')
    assert.deepEqual(await outcomesOf(answer), ['outcome_unknown'])
    const [event] = await eventsOf(answer.requestId)
    assert.deepEqual([event?.userId, event?.sessionId], [userId, sessionId])
  }
  assert.equal(await users({ id, disabledAt: { not: null }, emailConfirmedAt: { not: null } }), 1)
})

test('an end of a session by a refresh token is recorded with the session and its user, also if its outcome is unknown', async () => {
  const end = async (
    lose: (session: { refreshToken: string; next: string }) => Promise<Answer & { requestId: string }>,
  ) => {
    const { accessToken, refreshToken } = await direct.api.signedIn()
    const { sub: userId, sid: sessionId } = decodeJwt(accessToken)
    const second = expect(200, await direct.api.refresh(refreshToken))
    const { refreshToken: next } = expect(200, await direct.api.refresh(second.refreshToken))
    const { requestId } = await losing(() => lose({ refreshToken, next }))
    assert.deepEqual(await outcomesOf({ requestId }), ['outcome_unknown'])
    const [event] = await eventsOf(requestId)
    assert.deepEqual([event?.userId, event?.sessionId], [userId, sessionId])
  }
  await end(({ next }) => api.logout(next))
  await end(({ refreshToken }) => api.refresh(refreshToken))
})
