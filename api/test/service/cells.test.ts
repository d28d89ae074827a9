// Two cells (infra/helm/CELLS.md) share nothing: what one gives is worth nothing in the other.
import { afterAll, test } from 'vitest'
import { assertProblem, expect, respondAsync } from '../client.ts'
import { openSystem } from '../system.ts'

const cells = [await openSystem(), await openSystem()] as const
afterAll(() => Promise.all(cells.map((cell) => cell.close())))
for (const cell of cells) await cell.worker()
const home = await cells[0].gateway({ ISSUER: 'home' })
const other = await cells[1].gateway({ ISSUER: 'other' })

test('sessions, tickets and access tokens of one cell are refused by the other', async () => {
  const { account: credentials, accessToken, refreshToken } = await home.api.signedIn()
  const { ticket } = expect(202, await home.api.login(credentials, respondAsync))
  assertProblem(await other.api.me(accessToken), 401, 'invalid_token')
  assertProblem(await other.api.refresh(refreshToken), 401, 'invalid_refresh_token')
  assertProblem(await other.api.redeem(ticket), 400, 'invalid_ticket')
  // Nor did the other use them up.
  expect(200, await home.api.me(accessToken))
  expect(200, await home.api.refresh(refreshToken))
})

test('an account is unknown in the other cell, where its address is free', async () => {
  const credentials = await home.api.newAccount()
  assertProblem(await other.api.login(credentials), 401, 'invalid_credentials')
  expect(201, await other.api.register(credentials))
  assertProblem(await home.api.register(credentials), 409, 'email_taken')
})
