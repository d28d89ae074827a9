// Tickets that answer nothing: expired, forged, damaged, another service's.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { until } from '@spillway/local/testing'
import { slowAccount } from './account.ts'
import {
  assertProblem,
  changePassword,
  expect,
  login,
  newAccount,
  newCredentials,
  redeem,
  register,
  respondAsync,
} from './client.ts'
import { newSealKey } from './keys.ts'
import { openSystem, whileFrozen } from './system.ts'

const system = await openSystem()
after(() => system.close())
const worker = await system.worker({ SPILLWAY_TEST_HASHES: 'true' })
const { url } = await system.gateway()

test('a ticket can be redeemed until its time is over, and then no more', async () => {
  const { url: hasty } = await system.gateway({ TICKET_TTL_MS: '3000', LOGIN_WAIT_MS: '0' })
  const used = expect(202, await register(hasty, newCredentials(), respondAsync))
  expect(201, await redeem(url, used.ticket))

  const credentials = newCredentials()
  const { ticket } = expect(202, await register(hasty, credentials, respondAsync))
  const verdict = `${system.namespace.queuePrefix}:verdict:${ticket.split('.')[0]}`
  await until(() => system.redis.exists(verdict))
  await until(async () => (await system.redis.exists(verdict)) === 0)
  assertProblem(await redeem(url, ticket), 410, 'ticket_expired')
  assertProblem(await redeem(url, used.ticket), 410, 'ticket_expired')
  assertProblem(await login(url, credentials), 401, 'invalid_credentials')
})

test('a job whose ticket expired before its turn is dropped, and redeeming it is told so when its time is over', async () => {
  const { url: hasty } = await system.gateway({ TICKET_TTL_MS: '3000', LOGIN_WAIT_MS: '0' })
  await whileFrozen(worker, async () => {
    const { ticket } = expect(202, await register(hasty, newCredentials(), respondAsync))
    assertProblem(await redeem(url, ticket), 410, 'ticket_expired')
  })
  const dropped = await worker.process.waitForLog(({ msg }) => msg === 'job dropped')
  assert.equal(dropped.outcome, 'expired')
})

test('what is no ticket of this service is refused', async () => {
  const { ticket } = expect(202, await register(url, newCredentials(), respondAsync))
  const other = expect(202, await register(url, newCredentials(), respondAsync))
  const [id = '', kid = '', sealed = ''] = ticket.split('.')
  const [otherId = ''] = other.ticket.split('.')
  const flipped = `${sealed.startsWith('A') ? 'B' : 'A'}${sealed.slice(1)}`
  const forgeries = [
    '',
    '.',
    'ticket',
    id,
    `${id}.`,
    `${id}.${kid}`,
    `${id}.${kid}.`,
    `${id}.nobody.${sealed}`,
    `${id}.${kid}.${flipped}`,
    `${id}.${kid}.${sealed.slice(0, -4)}`,
    `${otherId}.${kid}.${sealed}`,
    `.${kid}.${sealed}`,
    'x'.repeat(4_096),
  ]
  for (const forgery of forgeries) assertProblem(await redeem(url, forgery), 400, 'invalid_ticket')
  assertProblem(await redeem(url, 'x'.repeat(4_097)), 422, 'invalid_request')
  expect(201, await redeem(url, ticket))
})

test('a ticket sealed by another service, or for another purpose, is refused', async () => {
  const { url: foreign } = await system.gateway({ SPILLWAY_SEAL_KEYS: newSealKey() })
  const { ticket } = expect(202, await register(foreign, newCredentials(), respondAsync))
  assertProblem(await redeem(url, ticket), 400, 'invalid_ticket')

  const held = expect(202, await login(url, await slowAccount(system.database, 1), respondAsync))
  const [id = ''] = held.ticket.split('.')
  const verdict = await until(() => system.redis.get(`${system.namespace.queuePrefix}:verdict:${id}`))
  assertProblem(await redeem(url, `${id}.${verdict}`), 400, 'invalid_ticket')
  expect(200, await redeem(url, held.ticket))
})

test('a verdict written into Redis by someone else answers nothing', async () => {
  const { email } = await newAccount(url)
  const attempt = expect(202, await login(url, { email, password: 'not the password' }, respondAsync))
  const mine = await newAccount(url)
  const right = expect(202, await login(url, mine, respondAsync))
  const key = (ticket: string) => `${system.namespace.queuePrefix}:verdict:${ticket.split('.')[0]}`
  const match = await until(() => system.redis.get(key(right.ticket)))
  await until(() => system.redis.get(key(attempt.ticket)))
  await system.redis.set(key(attempt.ticket), match, 'KEEPTTL')
  expect(202, await redeem(url, attempt.ticket, respondAsync))
  await system.redis.set(key(attempt.ticket), 'match', 'KEEPTTL')
  expect(202, await redeem(url, attempt.ticket, respondAsync))
  expect(200, await redeem(url, right.ticket))
})

test('a seal key is rotated without losing a ticket', async (t) => {
  const rotated = await openSystem()
  t.after(() => rotated.close())
  const [older, newer] = [newSealKey('older'), newSealKey('newer')]
  await rotated.worker({ SPILLWAY_SEAL_KEYS: `${newer},${older}` })
  const before = await rotated.gateway({ SPILLWAY_SEAL_KEYS: `${older},${newer}` })
  const between = await rotated.gateway({ SPILLWAY_SEAL_KEYS: `${newer},${older}` })
  const credentials = newCredentials()
  const { ticket } = expect(202, await register(before.url, credentials, respondAsync))
  expect(201, await redeem(between.url, ticket))
  const tokens = expect(200, await login(between.url, credentials))
  const change = { currentPassword: credentials.password, newPassword: 'another pass phrase' }
  expect(204, await changePassword(before.url, tokens.accessToken, change))
})
