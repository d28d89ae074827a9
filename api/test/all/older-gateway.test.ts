// Versions side by side, as during an upgrade and a rollback: gateways and workers of an earlier version (infra/local/versions) run on
// the database of today, beside those of today.
import assert from 'node:assert/strict'
import { unpackOlderVersion } from '@spillway/infra/rig'
import { afterAll, test } from 'vitest'
import {
  changePassword,
  expect,
  login,
  logout,
  me,
  newAccount,
  newCredentials,
  redeem,
  refresh,
  register,
  respondAsync,
} from '../client.ts'
import { openSystem } from '../system.ts'

const version = await unpackOlderVersion()
afterAll(() => version.close())
const system = await openSystem()
afterAll(() => system.close())
await system.worker()
const older = await system.gatewayProcess({}, { entry: version.gateway })
const today = await system.gatewayProcess()
const bothWays = [
  [older.url, today.url],
  [today.url, older.url],
] as const

test('an older gateway does on the database of today what it did on its own', async () => {
  const { url } = older
  const { email, password } = await newAccount(url)
  const tokens = expect(200, await login(url, { email, password }))
  assert.equal(expect(200, await me(url, tokens.accessToken)).email, email)
  const refreshed = expect(200, await refresh(url, tokens.refreshToken))
  const newPassword = `${password} anew`
  expect(204, await changePassword(url, refreshed.accessToken, { currentPassword: password, newPassword }))
  expect(401, await login(url, { email, password }))
  const { refreshToken } = expect(200, await login(url, { email, password: newPassword }))
  expect(204, await logout(url, refreshToken))
  expect(401, await refresh(url, refreshToken))
})

test('accounts and sessions of either version are good at the other', async () => {
  for (const [one, other] of bothWays) {
    const account = await newAccount(one)
    const { accessToken, refreshToken } = expect(200, await login(one, account))
    assert.equal(expect(200, await me(other, accessToken)).email, account.email)
    const second = expect(200, await refresh(other, refreshToken))
    const third = expect(200, await refresh(one, second.refreshToken))
    expect(200, await login(other, account))
    expect(204, await logout(other, third.refreshToken))
    expect(401, await me(one, third.accessToken))
  }
})

test('tickets of a registration at either version are redeemed at the other', async () => {
  for (const [one, other] of bothWays) {
    const credentials = newCredentials()
    const registering = expect(202, await register(one, credentials, respondAsync))
    assert.equal(expect(201, await redeem(other, registering.ticket)).email, credentials.email)
  }
})

test('an older worker answers the gateways of both versions', async (t) => {
  const elsewhere = await openSystem()
  t.onTestFinished(() => elsewhere.close())
  await elsewhere.worker({}, { entry: version.worker })
  for (const gateway of [
    await elsewhere.gatewayProcess(),
    await elsewhere.gatewayProcess({}, { entry: version.gateway }),
  ]) {
    const account = await newAccount(gateway.url)
    expect(200, await login(gateway.url, account))
    expect(401, await login(gateway.url, { ...account, password: 'another one' }))
    expect(401, await login(gateway.url, newCredentials()))
  }
})
