// The whole path through real processes: two gateways, two workers, one PostgreSQL, one Redis.
import assert from 'node:assert/strict'
import type { NodeProcess } from '@spillway/infra/processes/node-process'
import { until } from '@spillway/infra/processes/until'
import { test } from 'vitest'
import { assertProblem, atOnce, expect, NEXT, newCredentials, patiently, respondAsync } from '../client.ts'
import { locksAwaited, openSystem } from '../system.ts'

const system = await openSystem()
const workers = await Promise.all([system.worker(), system.worker()])
const gateways = await Promise.all([system.gatewayProcess(), system.gatewayProcess()])
const [here, there] = [gateways[0].api, gateways[1].api]

test('an account made at one gateway logs in at the other', async () => {
  const credentials = newCredentials()
  const user = expect(201, await here.register(credentials))
  assert.equal(user.email, credentials.email)
  assert.ok(Math.abs(Date.now() - Date.parse(user.createdAt)) < 60_000)

  const tokens = expect(200, await there.login(credentials))
  assert.equal(tokens.tokenType, 'Bearer')
  assert.equal(tokens.expiresIn, 900)
  assert.deepEqual(expect(200, await here.me(tokens.accessToken)), user)
})

test('an address can be registered once, also by a hundred at once', async () => {
  const credentials = newCredentials()
  const answers = await atOnce(100, (n) => patiently(() => (n % 2 ? here : there).register(credentials)))
  assert.equal(answers.filter(({ status }) => status === 201).length, 1)
  for (const answer of answers.filter(({ status }) => status !== 201)) assertProblem(answer, 409, 'email_taken')
  assertProblem(await here.register(credentials), 409, 'email_taken')
  assert.equal(await system.database.user.count({ where: { email: credentials.email } }), 1)
})

test('a ticket is redeemed at another gateway, for what the call would have answered, once', async () => {
  const credentials = newCredentials()
  const registration = expect(202, await here.register(credentials, respondAsync))
  const user = expect(201, await there.redeem(registration.ticket))
  assert.equal(user.email, credentials.email)

  const { ticket } = expect(202, await there.login(credentials, respondAsync))
  const tokens = expect(200, await here.redeem(ticket))
  assert.equal(expect(200, await there.me(tokens.accessToken)).id, user.id)

  const failed = expect(202, await there.login({ ...credentials, password: 'something else' }, respondAsync))
  assertProblem(await here.redeem(failed.ticket), 401, 'invalid_credentials')

  const taken = expect(202, await here.register(newCredentials(), respondAsync))
  expect(201, await there.redeem(taken.ticket))

  for (const used of [registration.ticket, ticket, failed.ticket, taken.ticket]) {
    for (const api of [here, there]) assertProblem(await api.redeem(used), 409, 'ticket_used')
  }
})

test('a logout ends the session at once: its access token and its refresh token are refused everywhere', async () => {
  const { account: credentials, accessToken, refreshToken } = await here.signedIn()
  expect(204, await there.logout(refreshToken))
  assertProblem(await here.me(accessToken), 401, 'invalid_token')
  assertProblem(await here.refresh(refreshToken), 401, 'invalid_refresh_token')
  assertProblem(await here.changePassword(accessToken, credentials.password), 401, 'invalid_token')
  expect(204, await here.logout(refreshToken))
})

test('a new password takes the place of the old one, and ends the other sessions of the user alone', async () => {
  const credentials = await here.newAccount()
  const bystander = await here.signedIn()
  const mine = expect(200, await here.login(credentials))
  const other = expect(200, await there.login(credentials))
  const newPassword = 'another pass phrase'

  const refused = await here.changePassword(mine.accessToken, 'not the one', newPassword)
  assertProblem(refused, 401, 'invalid_credentials')
  expect(200, await here.me(other.accessToken))

  expect(204, await there.changePassword(mine.accessToken, credentials.password, newPassword))
  expect(200, await here.me(mine.accessToken))
  expect(200, await here.refresh(mine.refreshToken))
  assertProblem(await there.me(other.accessToken), 401, 'invalid_token')
  assertProblem(await there.refresh(other.refreshToken), 401, 'invalid_refresh_token')
  assertProblem(await here.login(credentials), 401, 'invalid_credentials')
  expect(200, await there.login({ ...credentials, password: newPassword }))
  expect(200, await here.me(bystander.accessToken))
})

test('a password is changed by a ticket, and a ticket of before the change can no longer log in', async () => {
  const { account: credentials, accessToken } = await here.signedIn()
  const stale = expect(202, await here.login(credentials, respondAsync))
  const { ticket } = expect(202, await here.changePassword(accessToken, credentials.password, NEXT, respondAsync))
  expect(204, await there.redeem(ticket))
  assertProblem(await there.redeem(ticket), 409, 'ticket_used')
  assertProblem(await there.redeem(stale.ticket), 401, 'invalid_credentials')
  expect(200, await here.login({ ...credentials, password: NEXT }))
})

test('a login that ends while the password is being changed opens no session', async () => {
  const credentials = await here.newAccount()
  const { email } = credentials
  const { ticket } = expect(202, await here.login(credentials, respondAsync))
  await until(() => system.redis.exists(`${system.namespace.queuePrefix}:verdict:${ticket.split('.')[0]}`))
  const redeemed = await system.database.$transaction(async (changing) => {
    await changing.user.update({ where: { email }, data: { credentialVersion: { increment: 1 } } })
    const answer = there.redeem(ticket)
    const ended = answer.then(() => true)
    await until(async () => (await Promise.race([ended, locksAwaited(system.database)])) === true)
    return { answer }
  })
  assertProblem(await redeemed.answer, 401, 'invalid_credentials')
})

test('a change of password that cannot end the other sessions changes nothing', async () => {
  const { account: credentials, ...mine } = await here.signedIn()
  const other = expect(200, await there.login(credentials))
  await system.database.$executeRaw`ALTER TABLE sessions ADD CONSTRAINT endless CHECK (revoked_at IS NULL) NOT VALID`
  assertProblem(await here.changePassword(mine.accessToken, credentials.password), 500, 'internal_error')
  await system.database.$executeRaw`ALTER TABLE sessions DROP CONSTRAINT endless`
  expect(200, await here.me(other.accessToken))
  expect(200, await there.login(credentials))
})

test('both workers take part, and a job id leads from the log line of a gateway to the log line of a worker', async () => {
  const credentials = await here.newAccount()
  await atOnce(20, (n) => (n % 2 ? here : there).login(credentials))
  const linesOf = (processes: NodeProcess[], msg: string) =>
    processes.flatMap(({ logs }) => logs.filter((line) => line.msg === msg && line.jobId !== undefined))
  const loginsOf = () =>
    linesOf(gateways, 'request').filter(({ route, status }) => route === '/v1/login' && status === 200)
  await until(() => loginsOf().length >= 20)
  const answered = () => new Set(linesOf(workers, 'job answered').map(({ jobId }) => jobId))
  await until(() => loginsOf().every(({ jobId }) => answered().has(jobId)))
  for (const worker of workers) assert.ok(linesOf([worker], 'job answered').length > 0)
})
