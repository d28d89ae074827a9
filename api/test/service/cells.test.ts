// Two cells (infra/helm/CELLS.md) share nothing: what one gives is worth nothing in the other.
import { afterAll, test } from 'vitest'
import { assertProblem, expect, login, me, newAccount, redeem, refresh, register, respondAsync } from '../client.ts'
import { openSystem } from '../system.ts'

const cells = [await openSystem(), await openSystem()] as const
afterAll(() => Promise.all(cells.map((cell) => cell.close())))
for (const cell of cells) await cell.worker()
const home = await cells[0].gateway({ ISSUER: 'home' })
const other = await cells[1].gateway({ ISSUER: 'other' })

test('sessions, tickets and access tokens of one cell are refused by the other', async () => {
  const credentials = await newAccount(home.url)
  const { accessToken, refreshToken } = expect(200, await login(home.url, credentials))
  const { ticket } = expect(202, await login(home.url, credentials, respondAsync))
  assertProblem(await me(other.url, accessToken), 401, 'invalid_token')
  assertProblem(await refresh(other.url, refreshToken), 401, 'invalid_refresh_token')
  assertProblem(await redeem(other.url, ticket), 400, 'invalid_ticket')
  // Nor did the other use them up.
  expect(200, await me(home.url, accessToken))
  expect(200, await refresh(home.url, refreshToken))
})

test('an account is unknown in the other cell, where its address is free', async () => {
  const credentials = await newAccount(home.url)
  assertProblem(await login(other.url, credentials), 401, 'invalid_credentials')
  expect(201, await register(other.url, credentials))
  assertProblem(await register(home.url, credentials), 409, 'email_taken')
})
