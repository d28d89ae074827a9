// The whole path through real processes: two gateways, two workers, one PostgreSQL, one Redis.
import assert from 'node:assert/strict'
import type { NodeProcess } from '@spillway/infra/processes/node-process'
import { until } from '@spillway/infra/processes/until'
import { test } from 'vitest'
import {
  assertProblem,
  changePassword,
  expect,
  login,
  logout,
  me,
  newAccount,
  newCredentials,
  patiently,
  redeem,
  refresh,
  register,
  respondAsync,
} from '../client.ts'
import { locksAwaited } from '../locks.ts'
import { openSystem } from '../system.ts'

const system = await openSystem()
const workers = await Promise.all([system.worker(), system.worker()])
const gateways = await Promise.all([system.gatewayProcess(), system.gatewayProcess()])
const [here, there] = [gateways[0].url, gateways[1].url]

test('an account made at one gateway logs in at the other', async () => {
  const credentials = newCredentials()
  const user = expect(201, await register(here, credentials))
  assert.equal(user.email, credentials.email)
  assert.ok(Math.abs(Date.now() - Date.parse(user.createdAt)) < 60_000)

  const tokens = expect(200, await login(there, credentials))
  assert.equal(tokens.tokenType, 'Bearer')
  assert.equal(tokens.expiresIn, 900)
  assert.deepEqual(expect(200, await me(here, tokens.accessToken)), user)
})

test('a wrong password and an unknown address get the same answer', async () => {
  const { email, password } = await newAccount(here)
  const wrong = await login(here, { email, password: `${password}!` })
  const unknown = await login(there, newCredentials())
  assertProblem(wrong, 401, 'invalid_credentials')
  assert.deepEqual(unknown.body, wrong.body)
  assert.deepEqual(namesOf(unknown.headers), namesOf(wrong.headers))
})

test('an address can be registered once, also by a hundred at once', async () => {
  const credentials = newCredentials()
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, n) => patiently(() => register(n % 2 ? here : there, credentials))),
  )
  assert.equal(answers.filter(({ status }) => status === 201).length, 1)
  for (const answer of answers.filter(({ status }) => status !== 201)) assertProblem(answer, 409, 'email_taken')
  assertProblem(await register(here, credentials), 409, 'email_taken')
  assert.equal(await system.database.user.count({ where: { email: credentials.email } }), 1)
})

test('a ticket is redeemed at another gateway, for what the call would have answered, once', async () => {
  const credentials = newCredentials()
  const registration = expect(202, await register(here, credentials, respondAsync))
  const user = expect(201, await redeem(there, registration.ticket))
  assert.equal(user.email, credentials.email)

  const { ticket } = expect(202, await login(there, credentials, respondAsync))
  const tokens = expect(200, await redeem(here, ticket))
  assert.equal(expect(200, await me(there, tokens.accessToken)).id, user.id)

  const failed = expect(202, await login(there, { ...credentials, password: 'something else' }, respondAsync))
  assertProblem(await redeem(here, failed.ticket), 401, 'invalid_credentials')

  const taken = expect(202, await register(here, newCredentials(), respondAsync))
  expect(201, await redeem(there, taken.ticket))

  for (const used of [registration.ticket, ticket, failed.ticket, taken.ticket]) {
    for (const url of [here, there]) assertProblem(await redeem(url, used), 409, 'ticket_used')
  }
})

test('two tickets for one address: one makes the account, the other learns that it is taken', async () => {
  const credentials = newCredentials()
  const first = expect(202, await register(here, credentials, respondAsync))
  const second = expect(202, await register(there, credentials, respondAsync))
  expect(201, await redeem(here, second.ticket))
  assertProblem(await redeem(there, first.ticket), 409, 'email_taken')
})

test('a logout ends the session at once: its access token and its refresh token are refused everywhere', async () => {
  const credentials = await newAccount(here)
  const { accessToken, refreshToken } = expect(200, await login(here, credentials))
  expect(204, await logout(there, refreshToken))
  assertProblem(await me(here, accessToken), 401, 'invalid_token')
  assertProblem(await refresh(here, refreshToken), 401, 'invalid_refresh_token')
  const next = { currentPassword: credentials.password, newPassword: 'another pass phrase' }
  assertProblem(await changePassword(here, accessToken, next), 401, 'invalid_token')
  expect(204, await logout(here, refreshToken))
})

test('a new password takes the place of the old one, and ends the other sessions of the user alone', async () => {
  const credentials = await newAccount(here)
  const bystander = expect(200, await login(here, await newAccount(here)))
  const mine = expect(200, await login(here, credentials))
  const other = expect(200, await login(there, credentials))
  const newPassword = 'another pass phrase'

  const refused = await changePassword(here, mine.accessToken, { currentPassword: 'not the one', newPassword })
  assertProblem(refused, 401, 'invalid_credentials')
  expect(200, await me(here, other.accessToken))

  const change = { currentPassword: credentials.password, newPassword }
  expect(204, await changePassword(there, mine.accessToken, change))
  expect(200, await me(here, mine.accessToken))
  expect(200, await refresh(here, mine.refreshToken))
  assertProblem(await me(there, other.accessToken), 401, 'invalid_token')
  assertProblem(await refresh(there, other.refreshToken), 401, 'invalid_refresh_token')
  assertProblem(await login(here, credentials), 401, 'invalid_credentials')
  expect(200, await login(there, { ...credentials, password: newPassword }))
  expect(200, await me(here, bystander.accessToken))
})

test('a password is changed by a ticket, and a ticket of before the change can no longer log in', async () => {
  const credentials = await newAccount(here)
  const { accessToken } = expect(200, await login(here, credentials))
  const stale = expect(202, await login(here, credentials, respondAsync))
  const change = { currentPassword: credentials.password, newPassword: 'another pass phrase' }
  const { ticket } = expect(202, await changePassword(here, accessToken, change, respondAsync))
  expect(204, await redeem(there, ticket))
  assertProblem(await redeem(there, ticket), 409, 'ticket_used')
  assertProblem(await redeem(there, stale.ticket), 401, 'invalid_credentials')
  expect(200, await login(here, { ...credentials, password: change.newPassword }))
})

test('a login that ends while the password is being changed opens no session', async () => {
  const credentials = await newAccount(here)
  const { email } = credentials
  const { ticket } = expect(202, await login(here, credentials, respondAsync))
  await until(() => system.redis.exists(`${system.namespace.queuePrefix}:verdict:${ticket.split('.')[0]}`))
  const redeemed = await system.database.$transaction(async (changing) => {
    await changing.user.update({ where: { email }, data: { credentialVersion: { increment: 1 } } })
    const answer = redeem(there, ticket)
    const ended = answer.then(() => true)
    await until(async () => (await Promise.race([ended, locksAwaited(system.database)])) === true)
    return { answer }
  })
  assertProblem(await redeemed.answer, 401, 'invalid_credentials')
})

test('a change of password that cannot end the other sessions changes nothing', async () => {
  const credentials = await newAccount(here)
  const mine = expect(200, await login(here, credentials))
  const other = expect(200, await login(there, credentials))
  const change = { currentPassword: credentials.password, newPassword: 'another pass phrase' }
  await system.database.$executeRaw`ALTER TABLE sessions ADD CONSTRAINT endless CHECK (revoked_at IS NULL) NOT VALID`
  assertProblem(await changePassword(here, mine.accessToken, change), 500, 'internal_error')
  await system.database.$executeRaw`ALTER TABLE sessions DROP CONSTRAINT endless`
  expect(200, await me(here, other.accessToken))
  expect(200, await login(there, credentials))
})

test('both workers take part, and a job id leads from the log line of a gateway to the log line of a worker', async () => {
  const credentials = await newAccount(here)
  await Promise.all(Array.from({ length: 20 }, (_, n) => login(n % 2 ? here : there, credentials)))
  const linesOf = (processes: NodeProcess[], msg: string) =>
    processes.flatMap(({ logs }) => logs.filter((line) => line.msg === msg && line.jobId !== undefined))
  const loginsOf = () =>
    linesOf(gateways, 'request').filter(({ route, status }) => route === '/v1/login' && status === 200)
  await until(() => loginsOf().length >= 20)
  const answered = () => new Set(linesOf(workers, 'job answered').map(({ jobId }) => jobId))
  await until(() => loginsOf().every(({ jobId }) => answered().has(jobId)))
  for (const worker of workers) assert.ok(linesOf([worker], 'job answered').length > 0)
})

function namesOf(headers: Headers): string[] {
  return [...headers.keys()].sort()
}
