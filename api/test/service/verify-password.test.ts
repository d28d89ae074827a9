// A signed-in user proves once more to know the password: POST /v1/me/password/verify.
import { afterAll, test } from 'vitest'
import {
  assertProblem,
  type Call,
  type Credentials,
  call,
  changePassword,
  expect,
  login,
  logout,
  newAccount,
  redeem,
  refresh,
  respondAsync,
} from '../client.ts'
import { shareSystem, whileFrozen } from '../system.ts'

const system = await shareSystem()
afterAll(() => system.close())
const { warmWorker: worker } = system
const here = (await system.gateway()).url
const there = (await system.gateway()).url

const verify = (url: string, token: string, password: string, options: Call = {}) =>
  call(url, 'POST', '/v1/me/password/verify', { ...options, token, body: { password } })

async function newSession(): Promise<{ account: Credentials; accessToken: string; refreshToken: string }> {
  const account = await newAccount(here)
  return { account, ...expect(200, await login(here, account)) }
}

test('the right password is 204, a wrong one 401, and neither changes the session', async () => {
  const { account, accessToken, refreshToken } = await newSession()
  expect(204, await verify(here, accessToken, account.password))
  assertProblem(await verify(here, accessToken, `${account.password}!`), 401, 'invalid_credentials')
  expect(200, await refresh(here, refreshToken))
})

test('without a session there is nothing to verify, and no hash', async () => {
  const { account, accessToken, refreshToken } = await newSession()
  expect(204, await logout(here, refreshToken))
  await whileFrozen(worker, async () => {
    assertProblem(await verify(here, accessToken, account.password), 401, 'invalid_token')
    assertProblem(await verify(here, 'no token', account.password), 401, 'invalid_token')
  })
})

test('a ticket for it is redeemed at another gateway, once', async () => {
  const { account, accessToken } = await newSession()
  const right = expect(202, await verify(here, accessToken, account.password, respondAsync))
  const wrong = expect(202, await verify(here, accessToken, 'another pass phrase', respondAsync))
  expect(204, await redeem(there, right.ticket))
  assertProblem(await redeem(here, right.ticket), 409, 'ticket_used')
  assertProblem(await redeem(there, wrong.ticket), 401, 'invalid_credentials')
})

test('a verdict does not count if the password was changed or the session ended meanwhile', async () => {
  const { account, accessToken } = await newSession()
  const other = expect(200, await login(here, account))
  const [kept, ended] = [
    expect(202, await verify(here, accessToken, account.password, respondAsync)),
    expect(202, await verify(here, other.accessToken, account.password, respondAsync)),
  ]
  const change = { currentPassword: account.password, newPassword: 'another pass phrase' }
  expect(204, await changePassword(here, accessToken, change))
  assertProblem(await redeem(there, kept.ticket), 401, 'invalid_credentials')
  assertProblem(await redeem(there, ended.ticket), 401, 'invalid_token')
})

test('guesses are limited for each account', async () => {
  const limited = (await system.gateway({ LIMIT_PER_ACCOUNT: '3' })).url
  const { account, accessToken } = await newSession()
  for (let guess = 0; guess < 3; guess++) {
    assertProblem(await verify(limited, accessToken, `guess ${guess} at it`), 401, 'invalid_credentials')
  }
  assertProblem(await verify(limited, accessToken, account.password), 429, 'too_many_requests')
})
