// Tickets of operations that need a session: redeemed after the end of the session, they change nothing and tell nothing of the password.
import assert from 'node:assert/strict'
import { afterAll, test } from 'vitest'
import {
  assertProblem,
  call,
  expect,
  login,
  logout,
  newAccount,
  newCredentials,
  redeem,
  respondAsync,
} from '../client.ts'
import { startMailServer } from '../mail-server.ts'
import { shareSystem } from '../system.ts'

const system = await shareSystem()
const mails = await startMailServer()
afterAll(async () => {
  await system.close()
  await mails.stop()
})
const { url } = await system.gateway(mails.env)
const { url: there } = await system.gateway(mails.env)
const NEXT = 'another pass phrase entirely'

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
    const account = await newAccount(url)
    const { accessToken, refreshToken } = expect(200, await login(url, account))
    const ask = (password: string) =>
      call(url, method, path, { ...respondAsync, token: accessToken, body: bodyOf(password) })
    const [right, wrong] = [expect(202, await ask(account.password)), expect(202, await ask('wrong'))]
    expect(204, await logout(there, refreshToken))
    for (const { ticket } of [right, wrong]) assertProblem(await redeem(there, ticket), 401, 'invalid_token')
    expect(200, await login(url, account))
    const { email } = account
    assert.equal(await system.database.user.count({ where: { email, credentialVersion: 1 } }), 1)
  })
}
