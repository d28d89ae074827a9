// Device tokens do not outlive what they were issued for: the account, its address, its password;
// whatever Redis has lost, and however wrong the clocks of gateways are.
import assert from 'node:assert/strict'
import { clockOff } from '@spillway/infra/harness/clocks'
import { newSealKey } from '@spillway/infra/start/secrets'
import { test } from 'vitest'
import { delayStrangers, nameInRedis } from '../account.ts'
import { type Credentials, expect } from '../client.ts'
import { startMailServer } from '../mail-server.ts'
import { openSystem } from '../system.ts'

const mails = await startMailServer()
const system = await openSystem()
const { SPILLWAY_SEAL_KEYS: firstKey = '' } = system.environment
const nextKey = newSealKey('next')
const SPILLWAY_SEAL_KEYS = `${firstKey},${nextKey}`
await system.worker({ SPILLWAY_SEAL_KEYS })
const held = { GUESSES_PER_ACCOUNT: '1', SPILLWAY_SEAL_KEYS }
const [{ api: here }, { api: withMail }] = await Promise.all([
  system.gateway(held),
  system.gateway({ ...held, ...mails.env }),
])
const { database } = system

/** Whether a token makes its device known to an address, with or without an account. */
async function isKnown(token: string, { email }: Pick<Credentials, 'email'>, api = here): Promise<boolean> {
  await delayStrangers({ ...system, environment: { SPILLWAY_SEAL_KEYS } }, email)
  const guess = { email, password: 'a guess' }
  const { code } = (await api.login(guess, { headers: { 'spillway-device': token } })).body
  assert.ok(['invalid_credentials', 'too_many_requests'].includes(code), code)
  return code === 'invalid_credentials'
}

test('the devices of a deleted account are strangers to its address', async () => {
  const { account, accessToken, deviceToken } = await here.signedIn()
  assert.ok(await isKnown(deviceToken, account))
  expect(204, await here.deleteAccount(accessToken, account.password))
  assert.ok(!(await isKnown(deviceToken, account)))
})

test('an account begins without known devices, however the one before it went', async () => {
  for (const api of [here, withMail]) {
    const { account, deviceToken } = await api.signedIn()
    assert.ok(await isKnown(deviceToken, account))
    await database.user.deleteMany({ where: { email: account.email } })
    assert.ok(!(await isKnown(deviceToken, account)))
    expect(201, await api.register(account))
    assert.ok(!(await isKnown(deviceToken, account)))
  }
})

test('whoever registers a taken address makes no device of its owner a stranger', async () => {
  const { account, deviceToken } = await withMail.signedIn()
  expect(201, await withMail.register({ ...account, password: 'another pass phrase' }))
  assert.ok(await isKnown(deviceToken, account))
})

test('after a change of address the devices of either address are strangers to it', async () => {
  const { account, accessToken, deviceToken } = await withMail.signedIn()
  const former = await withMail.signedIn()
  const newEmail = former.account.email
  await database.user.deleteMany({ where: { email: newEmail } })
  expect(204, await withMail.changeEmail(accessToken, newEmail, account.password))
  const { token } = await mails.next(newEmail, /Confirm your new/)
  assert.ok(await isKnown(deviceToken, account))
  expect(204, await withMail.confirmEmail(token))
  assert.ok(!(await isKnown(deviceToken, account)))
  assert.ok(!(await isKnown(former.deviceToken, former.account)))
})

test('devices stay forgotten when the next seal key becomes the first', async () => {
  const { account, accessToken, deviceToken } = await here.signedIn()
  expect(204, await here.deleteAccount(accessToken, account.password))
  const another = await here.signedIn()
  const { api } = await system.gateway({ ...held, SPILLWAY_SEAL_KEYS: `${nextKey},${firstKey}` })
  assert.ok(await isKnown(another.deviceToken, another.account, api))
  assert.ok(!(await isKnown(deviceToken, account, api)))
})

test('a token of a gateway whose clock is ahead does not outlive the password, nor does one that Redis has forgotten all about', async () => {
  const ahead = await system.gatewayProcess({ ...held, ...clockOff(30_000) })
  const { account, accessToken, deviceToken } = await ahead.api.signedIn()
  assert.ok(await isKnown(deviceToken, account))
  expect(204, await here.changePassword(accessToken, account.password))
  const keys = await system.redis.keys(`${system.namespace.queuePrefix}:*${nameInRedis(system, account.email)}*`)
  if (keys.length > 0) await system.redis.del(...keys)
  for (const api of [here, ahead.api]) assert.ok(!(await isKnown(deviceToken, account, api)))
})
