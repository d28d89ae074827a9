// The whole path through real processes: two gateways, two workers, one PostgreSQL, one Redis.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { test } from 'vitest'
import { assertProblem, atOnce, expect, NEXT, newCredentials, patiently, respondAsync } from '../client.ts'
import { locksAwaited, openSystem } from '../system.ts'

const system = await openSystem()
await system.worker()
const gateways = await Promise.all([system.gatewayProcess(), system.gatewayProcess()])
const [here, there] = [gateways[0].api, gateways[1].api]

test('an address can be registered once, also by a hundred at once', async () => {
  const credentials = newCredentials()
  const answers = await atOnce(100, (n) => patiently(() => (n % 2 ? here : there).register(credentials)))
  assert.equal(answers.filter(({ status }) => status === 201).length, 1)
  for (const answer of answers.filter(({ status }) => status !== 201)) assertProblem(answer, 409, 'email_taken')
  assertProblem(await here.register(credentials), 409, 'email_taken')
  assert.equal(await system.database.user.count({ where: { email: credentials.email } }), 1)
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
  await until(() => system.redis.exists(`${system.namespace.queuePrefix}:result:${ticket.split('.')[0]}`))
  const redeemed = await system.database.$transaction(async (changing) => {
    await changing.user.update({ where: { email }, data: { credentialVersion: { increment: 1 } } })
    const answer = there.redeem(ticket)
    const ended = answer.then(() => true)
    await until(async () => (await Promise.race([ended, locksAwaited(system.database)])) === true)
    return { answer }
  })
  assertProblem(await redeemed.answer, 401, 'invalid_credentials')
})
