// What is done by mail: confirming an address, a new password or address; it tells no account.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readMetric } from '@spillway/infra/harness/api-client'
import { until } from '@spillway/infra/processes/until'
import { test } from 'vitest'
import {
  type Answer,
  assertProblem,
  atOnce,
  type Client,
  expect,
  fetchPatiently,
  NEXT,
  newCredentials,
  respondAsync,
} from '../client.ts'
import { startMailServer } from '../mail-server.ts'
import { Operator, told } from '../operators.ts'
import { lockOptions, locksAwaited, shareSystem } from '../system.ts'

const mails = await startMailServer()
const system = await shareSystem()
const [{ api: here, opsUrl }, { api: there }] = await Promise.all([
  system.gateway(mails.env),
  system.gateway(mails.env),
])
const { database } = system
/** What mails are about. */
const [CONFIRM, RESET, CHANGE, TAKEN] = [/Confirm your e-mail/, /Choose a new password/, /Confirm your new/, /already/]

test('a new account is sent a link, which confirms its address once, of many uses at once', async () => {
  const { email, password } = newCredentials()
  expect(201, await here.register({ email, password }))
  const mail = await mails.next(email, CONFIRM)
  assert.match(mail.subject, /confirm/i)
  assert.match(mail.text, /https:\/\/app\.example\.test\/confirm#/)
  assert.equal(await confirmedAt(email), null)
  const answers = await atOnce(30, (n) => (n % 2 ? here : there).confirmEmail(mail.token))
  assertOneWon(answers)
  assert.notEqual(await confirmedAt(email), null)
})

test('the link can be sent again, and using one voids the others', async () => {
  const account = await here.newAccount()
  const first = await mails.next(account.email, CONFIRM)
  const { accessToken } = expect(200, await here.login(account))
  expect(204, await there.call('POST', '/v1/me/email/confirmation', { token: accessToken }))
  const second = await mails.next(account.email, CONFIRM, 1)
  assert.notEqual(first.token, second.token)
  expect(204, await here.confirmEmail(second.token))
  assertProblem(await there.confirmEmail(first.token), 400, 'invalid_mail_token')
})

test('a taken address is answered as a free one, whenever its ticket is redeemed, and its owner gets the mail', async () => {
  const owner = await here.newAccount()
  const free = newCredentials().email
  const before = await database.user.findUnique({ where: { email: owner.email } })
  const shapes = await Promise.all(
    [owner.email, free].map(async (email) => {
      const body = { email, password: NEXT }
      const direct = await here.register(body)
      const { ticket } = expect(202, await there.register(body, respondAsync))
      const twice = await Promise.all([here.redeem(ticket), there.redeem(ticket)])
      const codes = twice.map(({ status, body: { code } }) => `${status} ${code}`).sort()
      const { id, createdAt, email: told } = direct.body
      assert.match(id, /^[0-9a-f-]{36}$/)
      assert.equal(told, email)
      assert.ok(Math.abs(Date.parse(createdAt) - Date.now()) < 60_000)
      const headers = [...direct.headers.keys()].sort().join()
      return {
        status: direct.status,
        fields: Object.keys(direct.body),
        headers,
        codes,
        last: (await here.redeem(ticket)).body.code,
      }
    }),
  )
  assert.deepEqual(shapes[0], shapes[1])
  assert.deepEqual(shapes[0]?.codes, ['201 undefined', '409 ticket_used'])
  assert.equal((await mails.next(owner.email, TAKEN)).token, '')
  assert.deepEqual(await database.user.findUnique({ where: { email: owner.email } }), before)
  expect(200, await here.login(owner))
})

test('a forgotten password is replaced by the link, once, and every session ends', async () => {
  const account = await here.newAccount()
  const { accessToken, refreshToken } = expect(200, await there.login(account))
  expect(204, await here.forgotten(account.email.toUpperCase()))
  const { token } = await mails.next(account.email, /\/reset#/)
  const weak = await here.resetPassword(token, 'password')
  assertProblem(weak, 422, 'invalid_request')
  expect(200, await there.resetPassword(token))
  assertProblem(await here.resetPassword(token), 400, 'invalid_mail_token')
  assertProblem(await here.me(accessToken), 401, 'invalid_token')
  assertProblem(await here.refresh(refreshToken), 401, 'invalid_refresh_token')
  assertProblem(await here.login(account), 401, 'invalid_credentials')
  expect(200, await here.login({ ...account, password: NEXT }))
  await mails.next(account.email, /password was changed/)
  assert.notEqual(await confirmedAt(account.email), null)
  const { id: userId } = await database.user.findUniqueOrThrow({ where: { email: account.email } })
  const recorded = async (outcome: string) =>
    (await database.auditEvent.findMany({ where: { event: 'reset_password', outcome, userId } })).length
  await until(async () => (await recorded('ok')) === 1)
})

test('a link is void once it has expired, the password was changed, or the account has another address', async () => {
  const { account, accessToken } = await here.signedIn()
  await here.forgotten(account.email)
  const [confirmation, link] = [await mails.next(account.email, CONFIRM), await mails.next(account.email, RESET)]
  expect(204, await here.changePassword(accessToken, account.password))
  assertProblem(await here.resetPassword(link.token), 400, 'invalid_mail_token')

  await here.forgotten(account.email)
  const expired = await mails.next(account.email, RESET, 1)
  await database.mailToken.updateMany({ where: { email: account.email }, data: { expiresAt: new Date() } })
  assertProblem(await here.resetPassword(expired.token), 400, 'invalid_mail_token')
  assertProblem(await here.confirmEmail(confirmation.token), 400, 'invalid_mail_token')

  await here.forgotten(account.email)
  const old = await mails.next(account.email, RESET, 2)
  const to = newCredentials().email
  expect(204, await here.changeEmail(accessToken, to, NEXT))
  expect(204, await here.confirmEmail((await mails.next(to, CHANGE)).token))
  assertProblem(await here.resetPassword(old.token), 400, 'invalid_mail_token')

  const abandoned = newCredentials().email
  expect(204, await here.changeEmail(accessToken, abandoned, NEXT))
  const change = await mails.next(abandoned, CHANGE)
  expect(204, await here.changePassword(accessToken, NEXT, account.password))
  assertProblem(await here.confirmEmail(change.token), 400, 'invalid_mail_token')

  // Nor is a link sent after the password was changed, if it was asked for before.
  const turn = (change: string) => fetchPatiently(`${opsUrl}/queues/api/queues/mail/${change}`, { method: 'PUT' })
  assert.equal((await turn('pause')).status, 200)
  const late = newCredentials().email
  expect(204, await here.changeEmail(accessToken, late, account.password))
  expect(204, await here.changePassword(accessToken, account.password))
  assert.equal((await turn('resume')).status, 200)
  await until(async () => told(200, await new Operator(opsUrl).find(to)).unsentMails?.length === 0)
  assert.deepEqual(mails.to(late), [])
})

test('a token is good for what it was sent for alone', async () => {
  const account = await here.newAccount()
  await here.forgotten(account.email)
  const [confirmation, link] = [await mails.next(account.email, CONFIRM), await mails.next(account.email, RESET)]
  assertProblem(await here.resetPassword(confirmation.token), 400, 'invalid_mail_token')
  assertProblem(await here.confirmEmail(link.token), 400, 'invalid_mail_token')
  for (const token of ['x'.repeat(43), link.token.toLowerCase(), `${link.token.slice(0, -1)}_`])
    assertProblem(await here.resetPassword(token), 400, 'invalid_mail_token')
  assertProblem(await here.resetPassword(`${link.token}=`), 422, 'invalid_request')
  // One use voids the other links of its kind alone.
  expect(204, await here.confirmEmail(confirmation.token))
  expect(200, await here.resetPassword(link.token))
})

test('the address changes by the link to the new one and the password; the old one is told', async () => {
  const { account, accessToken } = await here.signedIn()
  const to = newCredentials().email
  assertProblem(await here.changeEmail(accessToken, to, 'a guess'), 401, 'invalid_credentials')
  expect(204, await here.changeEmail(accessToken, to.toUpperCase(), account.password))
  const { token } = await mails.next(to, CHANGE)
  assert.equal((await here.me(accessToken)).body.email, account.email)
  expect(204, await there.confirmEmail(token))
  assertProblem(await here.confirmEmail(token), 400, 'invalid_mail_token')
  assert.equal((await there.me(accessToken)).body.email, to)
  await mails.next(account.email, /address was changed/)
  expect(200, await here.login({ email: to, password: account.password }))
  assertProblem(await here.login(account), 401, 'invalid_credentials')
})

test('an address that has an account stays with it: the answer is the same, its owner is told, also if it is taken meanwhile', async () => {
  const [mine, other] = [await here.newAccount(), await here.newAccount()]
  const { accessToken } = expect(200, await here.login(mine))
  expect(204, await here.changeEmail(accessToken, other.email, mine.password))
  await mails.next(other.email, TAKEN)

  const late = newCredentials()
  expect(204, await here.changeEmail(accessToken, late.email, mine.password))
  const { token } = await mails.next(late.email, CHANGE)
  expect(201, await here.register(late))
  assertProblem(await here.confirmEmail(token), 400, 'invalid_mail_token')
  assert.equal((await here.me(accessToken)).body.email, mine.email)
})

test('of two links that change one address, used in the same moment, one does', async () => {
  const { account, accessToken } = await here.signedIn()
  const tokens: string[] = []
  for (const to of [newCredentials().email, newCredentials().email]) {
    expect(204, await here.changeEmail(accessToken, to, account.password))
    tokens.push((await mails.next(to, CHANGE)).token)
  }
  // Both wait for the account before either has done anything.
  const uses = await database.$transaction(async (locked) => {
    await locked.$executeRaw`SELECT FROM users WHERE email = ${account.email} FOR UPDATE`
    const used = tokens.map((token, n) => (n ? there : here).confirmEmail(token))
    await until(() => locksAwaited(database, 2))
    return used
  }, lockOptions)
  assertOneWon(await Promise.all(uses))
})

test('whether an address has an account is not even looked up before the answer to a forgotten password', async () => {
  const account = await here.newAccount()
  await mails.next(account.email, CONFIRM)
  const answers = await database.$transaction(async (locked) => {
    await locked.$executeRaw`LOCK TABLE users, mail_tokens IN ACCESS EXCLUSIVE MODE`
    return [await here.forgotten(account.email), await here.forgotten(newCredentials().email)]
  }, lockOptions)
  const shapes = answers.map(({ status, headers, body }) => ({ status, names: [...headers.keys()], body }))
  assert.equal(shapes[0]?.status, 204)
  assert.deepEqual(shapes[0], shapes[1])
  await mails.next(account.email, RESET)
})

test('where confirmation is needed, a right password does not log in before it, and is told apart from a wrong one by nothing', async () => {
  const { api } = await system.gateway({ ...mails.env, LOGIN_NEEDS_CONFIRMATION: 'true' })
  const account = await api.newAccount()
  const [right, wrong] = [await api.login(account), await api.login({ ...account, password: 'a guess at it' })]
  assertProblem(right, 401, 'invalid_credentials')
  assert.deepEqual(right.body, wrong.body)
  // Nor by its work: neither gets as far as the sessions.
  const answers = await database.$transaction(async (locked) => {
    await locked.$executeRaw`LOCK TABLE sessions IN ACCESS EXCLUSIVE MODE`
    return [await api.login(account), await api.login({ ...account, password: 'a guess at it' })]
  }, lockOptions)
  for (const answer of answers) assertProblem(answer, 401, 'invalid_credentials')
  expect(204, await api.confirmEmail((await mails.next(account.email, CONFIRM)).token))
  expect(200, await api.login(account))
  // An owner who has lost that mail gets in by another.
  const lost = await api.newAccount()
  await api.forgotten(lost.email)
  expect(200, await api.resetPassword((await mails.next(lost.email, RESET)).token))
  expect(200, await api.login({ ...lost, password: NEXT }))
})

test('nobody gets more mails within an hour than the limit, from whomever they come, and nobody is told', async () => {
  const { api, opsUrl } = await system.gateway({ ...mails.env, LIMIT_MAIL_PER_RECIPIENT: '3' })
  const account = newCredentials()
  expect(201, await api.register(account))
  for (let n = 0; n < 6; n += 1) expect(204, await api.forgotten(account.email))
  expect(201, await api.register(account))
  await until(async () => (await limitedAt(opsUrl)) === 5)
  await mails.next(account.email, /./, 2)
  assert.equal(mails.to(account.email).length, 3)
  // Operators are told, under the account.
  const { id: userId } = await database.user.findUniqueOrThrow({ where: { email: account.email } })
  const asked = { where: { event: 'request_password_reset', userId }, orderBy: { id: 'asc' } } as const
  const events = await until(async () => {
    const found = await database.auditEvent.findMany(asked)
    return found.length === 6 ? found : undefined
  })
  assert.deepEqual(
    events.map(({ outcome }) => outcome),
    ['ok', 'ok', ...Array(4).fill('too_many_mails')],
  )
})

test('a notice reaches its reader, whatever else was asked for before: only who has the password or a link causes one', async () => {
  const { api } = await system.gateway({ ...mails.env, LIMIT_MAIL_PER_RECIPIENT: '1' })
  const account = await api.newAccount()
  expect(204, await api.confirmEmail((await mails.next(account.email, CONFIRM)).token))
  const { accessToken } = expect(200, await api.login(account))
  for (let n = 0; n < 3; n += 1) expect(204, await api.forgotten(account.email))
  expect(204, await api.changePassword(accessToken, account.password))
  await mails.next(account.email, /password was changed/)
  assert.equal(mails.to(account.email).filter(({ subject }) => RESET.test(subject)).length, 0)
})

test('an address that nobody confirmed gets no more notices than other mails, whatever is done to its accounts', async () => {
  const { api, opsUrl } = await system.gateway({ ...mails.env, LIMIT_MAIL_PER_RECIPIENT: '3' })
  const { account: victim, accessToken } = await api.signedIn()
  await changeOften(api, accessToken, victim.password, 4)
  // Then by moving the account away, and by deleting another one of the address.
  const away = newCredentials().email
  expect(204, await api.changeEmail(accessToken, away, victim.password))
  expect(204, await api.confirmEmail((await mails.next(away, CHANGE)).token))
  expect(201, await api.register(victim))
  const { accessToken: next } = expect(200, await api.login(victim))
  expect(204, await api.deleteAccount(next, victim.password))
  await until(async () => (await limitedAt(opsUrl)) === 5)
  await mails.next(victim.email, /./, 2)
  assert.equal(mails.to(victim.email).length, 3)
})

test('a network asks for so many mails an hour and is then refused, before any work', async () => {
  const { api } = await system.gateway({ ...mails.env, LIMIT_MAIL_PER_NETWORK: '2', TRUST_PROXY: '127.0.0.1' })
  const from = (address: string) => ({ headers: { 'x-forwarded-for': address } })
  const ask = (address: string) => api.forgotten(newCredentials().email, from(address))
  expect(204, await ask('2001:db8::1'))
  expect(204, await ask('2001:db8::2'))
  const refused = await ask('2001:db8::3')
  assertProblem(refused, 429, 'too_many_requests')
  assert.ok(Number(refused.headers.get('retry-after')) > 60)
  assertProblem(await api.register(newCredentials(), from('2001:db8::4')), 429, 'too_many_requests')
  expect(204, await ask('2001:db8:1::1'))
  expect(401, await api.login(newCredentials(), from('2001:db8::5')))
})

test('without a mail server nothing of it is there, and a registration tells that an address is taken', async () => {
  const { api } = await system.gateway()
  const account = await api.newAccount()
  assertProblem(await api.register(account), 409, 'email_taken')
  const { accessToken } = expect(200, await api.login(account))
  for (const [method, path] of [
    ['POST', '/v1/password/forgotten'],
    ['POST', '/v1/password/reset'],
    ['POST', '/v1/email/confirm'],
    ['POST', '/v1/me/email/confirmation'],
    ['PUT', '/v1/me/email'],
  ] as const)
    assertProblem(await api.call(method, path, { token: accessToken, body: {} }), 403, 'mail_off')
})

/** Changes the password an even number of times, so that it is the same again. */
async function changeOften(api: Client, token: string, password: string, times: number): Promise<void> {
  for (let n = 0; n < times; n += 1) {
    const [currentPassword, newPassword] = n % 2 ? [NEXT, password] : [password, NEXT]
    expect(204, await api.changePassword(token, currentPassword, newPassword))
  }
}

/** How many mails a gateway did not send because their readers had enough. */
const limitedAt = (opsUrl: string) => readMetric(opsUrl, 'spillway_mails_total', 'outcome="limited"')

async function confirmedAt(email: string): Promise<Date | null> {
  return (await database.user.findUniqueOrThrow({ where: { email } })).emailConfirmedAt
}

function assertOneWon(answers: Answer[]): void {
  const codes = answers.map(({ status, body }) => (status === 200 || status === 204 ? 'won' : body.code))
  assert.equal(codes.filter((code) => code === 'won').length, 1, codes.join())
  assert.deepEqual([...new Set(codes)].sort(), ['invalid_mail_token', 'won'])
}

test('Redis counts the mails of a reader under a name that tells nobody who it is', async () => {
  const { email } = newCredentials()
  expect(204, await here.forgotten(email))
  const keys = await system.redis.keys(`${system.namespace.queuePrefix}:limit:mail:*`)
  assert.notEqual(keys.length, 0)
  const digest = createHash('sha256').update(email).digest('base64url').slice(0, 22)
  const named = keys.filter((key) => key.includes(digest))
  assert.deepEqual(named, [])
})
