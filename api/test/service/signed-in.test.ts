// What a signed-in user does with the password: deletes the account, or proves to know it. The
// tickets of such operations end with the session.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { test } from 'vitest'
import { assertProblem, atOnce, expect, NEXT, newCredentials, respondAsync } from '../client.ts'
import { startMailServer } from '../mail-server.ts'
import { shareSystem } from '../system.ts'

const mails = await startMailServer()
const system = await shareSystem()
const [{ api: here }, { api: there }] = await Promise.all([system.gateway(mails.env), system.gateway(mails.env)])

test('with the right password the account is deleted, and its address is free', async () => {
  const account = await here.newAccount()
  const phone = expect(200, await there.login(account))
  const { accessToken, refreshToken } = expect(200, await here.login(account))
  const { id } = expect(200, await here.me(accessToken))
  expect(200, await there.refresh(phone.refreshToken))
  assertProblem(await here.deleteAccount(accessToken, 'a guess'), 401, 'invalid_credentials')
  expect(204, await here.deleteAccount(accessToken, account.password))

  assertProblem(await there.me(phone.accessToken), 401, 'invalid_token')
  assertProblem(await there.refresh(refreshToken), 401, 'invalid_refresh_token')
  assertProblem(await there.login(account), 401, 'invalid_credentials')
  assertProblem(await there.deleteAccount(accessToken, account.password), 401, 'invalid_token')
  // The address is free again, for an account of its own.
  assert.notEqual(expect(201, await here.register(account)).id, id)
})

test('a new password takes the place of the old one, ends the other sessions of the user alone, and voids the tickets of before', async () => {
  const credentials = await here.newAccount()
  const bystander = await here.signedIn()
  const mine = expect(200, await here.login(credentials))
  const other = expect(200, await there.login(credentials))
  const stale = expect(202, await here.login(credentials, respondAsync))
  assertProblem(await here.changePassword(mine.accessToken, 'not the one', NEXT), 401, 'invalid_credentials')
  expect(200, await here.me(other.accessToken))
  expect(204, await there.changePassword(mine.accessToken, credentials.password, NEXT))
  expect(200, await here.me(mine.accessToken))
  expect(200, await here.refresh(mine.refreshToken))
  assertProblem(await there.me(other.accessToken), 401, 'invalid_token')
  assertProblem(await there.refresh(other.refreshToken), 401, 'invalid_refresh_token')
  assertProblem(await there.redeem(stale.ticket), 401, 'invalid_credentials')
  assertProblem(await here.login(credentials), 401, 'invalid_credentials')
  expect(200, await there.login({ ...credentials, password: NEXT }))
  expect(200, await here.me(bystander.accessToken))
})

test('a ticket deletes nothing once the password has changed', async () => {
  const { account, accessToken } = await here.signedIn()
  const { ticket } = expect(202, await here.deleteAccount(accessToken, account.password, respondAsync))
  expect(204, await there.changePassword(accessToken, account.password))
  assert.equal((await there.redeem(ticket)).status, 401)
  assert.equal(await system.database.user.count({ where: { email: account.email } }), 1)
})

test('each of many deletions at once succeeds, or finds its session ended, and the audit has one', async () => {
  const { account, accessToken } = await here.signedIn()
  const { id: userId } = expect(200, await here.me(accessToken))
  const answers = await atOnce(30, (n) => (n % 2 ? here : there).deleteAccount(accessToken, account.password))
  const codes = answers.map(({ status, body }) => (status === 204 ? 'deleted' : body.code))
  assert.ok(codes.includes('deleted'), codes.join())
  for (const code of codes) assert.ok(['deleted', 'invalid_token'].includes(code), codes.join())
  const deleted = codes.filter((code) => code === 'deleted').length
  const recorded = (outcome: string) =>
    system.database.auditEvent.count({ where: { userId, event: 'delete_account', outcome } })
  await until(async () => (await recorded('ok')) + (await recorded('unchanged')) === deleted)
  assert.equal(await recorded('ok'), 1)
  assert.equal(await system.database.user.count({ where: { email: account.email } }), 0)
})

test('of many changes of a password at once one wins, its password is the one, and its session goes on', async () => {
  const { account, accessToken } = await here.signedIn()
  const answers = await atOnce(30, (n) =>
    (n % 2 ? here : there).changePassword(accessToken, account.password, `${NEXT} ${n}`),
  )
  const codes = answers.map(({ status, body }) => (status === 204 ? 'changed' : body.code))
  assert.deepEqual(codes.toSorted(), ['changed', ...Array<string>(29).fill('invalid_credentials')])
  expect(200, await here.login({ ...account, password: `${NEXT} ${codes.indexOf('changed')}` }))
  expect(200, await there.me(accessToken))
})

test('a result does not count if the password was changed or the session ended meanwhile', async () => {
  const { account, accessToken } = await here.signedIn()
  const other = expect(200, await here.login(account))
  const [kept, ended] = [
    expect(202, await here.verifyPassword(accessToken, account.password, respondAsync)),
    expect(202, await here.verifyPassword(other.accessToken, account.password, respondAsync)),
  ]
  expect(204, await here.changePassword(accessToken, account.password))
  assertProblem(await there.redeem(kept.ticket), 401, 'invalid_credentials')
  assertProblem(await there.redeem(ended.ticket), 401, 'invalid_token')
})

const operations: Record<string, { method: string; path: string; bodyOf(password: string): object }> = {
  'change of the password': {
    method: 'PUT',
    path: '/v1/me/password',
    bodyOf: (currentPassword) => ({ currentPassword, newPassword: NEXT }),
  },
  'change of the address': {
    method: 'PUT',
    path: '/v1/me/email',
    bodyOf: (password) => ({ newEmail: newCredentials().email, password }),
  },
  'verified password': { method: 'POST', path: '/v1/me/password/verify', bodyOf: (password) => ({ password }) },
  deletion: { method: 'POST', path: '/v1/me/delete', bodyOf: (password) => ({ password }) },
}

for (const [name, { method, path, bodyOf }] of Object.entries(operations)) {
  test(`the ticket of a ${name} does not survive the end of its session, whether the password was right or wrong`, async () => {
    const { account, accessToken, refreshToken } = await here.signedIn()
    const ask = (password: string) =>
      here.call(method, path, { ...respondAsync, token: accessToken, body: bodyOf(password) })
    const [right, wrong] = [expect(202, await ask(account.password)), expect(202, await ask('wrong'))]
    expect(204, await there.logout(refreshToken))
    for (const { ticket } of [right, wrong]) assertProblem(await there.redeem(ticket), 401, 'invalid_token')
    expect(200, await here.login(account))
    const { email } = account
    assert.equal(await system.database.user.count({ where: { email, credentialVersion: 1 } }), 1)
  })
}
