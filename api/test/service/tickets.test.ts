// Tickets that answer nothing: expired, forged, damaged, another service's.

import assert from 'node:assert/strict'
import { redisTime } from '@spillway/infra/harness/clocks'
import { withDoubles } from '@spillway/infra/harness/spillway'
import { until } from '@spillway/infra/processes/until'

import { newSealKey } from '@spillway/infra/start/secrets'
import { parseKeyring } from '@spillway/queue/client'
import { jobKey } from '@spillway/queue/keys'
import { resultKey, resultSeal } from '@spillway/queue/wire/reply'
import { test } from 'vitest'
import { slowAccount } from '../account.ts'
import { assertProblem, expect, keepTicket, newCredentials, respondAsync } from '../client.ts'
import { openSystem, whileFrozen } from '../system.ts'

const system = await openSystem()
const worker = await system.worker({}, withDoubles)
const { api } = await system.gateway()

/** What is written in clear in the job of a ticket. */
async function jobOf(ticket: string): Promise<{ deadline: number }> {
  const [id = ''] = ticket.split('.')
  return JSON.parse((await system.redis.hget(jobKey(system.namespace.queuePrefix, id), 'data')) ?? '')
}

test('a ticket can be redeemed until its time is over, and then no more', async () => {
  const { api: hasty } = await system.gateway({ TICKET_TTL_MS: '3000', LOGIN_WAIT_MS: '0' })
  // On a busy machine its time may be over first.
  const used = await until(async () => {
    const given = expect(202, await hasty.register(newCredentials(), respondAsync))
    return (await api.redeem(given.ticket)).status === 201 ? given : undefined
  })

  const credentials = newCredentials()
  const { ticket } = expect(202, await hasty.register(credentials, respondAsync))
  const { deadline } = await jobOf(ticket)
  const result = `${system.namespace.queuePrefix}:result:${ticket.split('.')[0]}`
  // Gateways estimate Redis's clock, each by itself.
  await until(async () => (await redisTime(system.redis)) > deadline + 1_000)
  assert.equal(await system.redis.exists(result), 0)
  assertProblem(await api.redeem(ticket), 410, 'ticket_expired')
  assertProblem(await api.redeem(used.ticket), 410, 'ticket_expired')
  assertProblem(await api.login(credentials), 401, 'invalid_credentials')
})

test('a redemption is held no longer than its ticket is good, however long it may be otherwise', async () => {
  const { api: patient } = await system.gateway({ TICKET_TTL_MS: '9000', LOGIN_WAIT_MS: '6000' })
  await whileFrozen(worker, async () => {
    const { ticket } = expect(202, await patient.register(newCredentials(), respondAsync))
    // With five seconds behind it, it has four left.
    expect(202, await patient.redeem(ticket, { headers: { prefer: 'wait=5' } }))
    const { ticket: fresh } = expect(202, await patient.register(newCredentials(), respondAsync))
    const [expired, held] = [patient.redeem(ticket), patient.redeem(fresh, keepTicket)]
    assertProblem(await Promise.race([expired, held]), 410, 'ticket_expired')
    expect(202, await held)
  })
})

test('a ticket whose password could not be hashed stays good', async () => {
  const { ticket } = expect(202, await api.login(await slowAccount(system.database, 1), respondAsync))
  const [id = ''] = ticket.split('.')
  const { queuePrefix } = system.namespace
  const result = await until(() => system.redis.get(resultKey(queuePrefix, id)))
  const { deadline } = await jobOf(ticket)
  const keyring = parseKeyring(system.environment.SPILLWAY_SEAL_KEYS ?? '')
  const failure = keyring.seal(resultSeal({ id, name: 'verify', deadline }), {
    kind: 'refused',
    code: 'hashing_failed',
  })
  await system.redis.set(resultKey(queuePrefix, id), failure, 'KEEPTTL')
  for (let n = 0; n < 2; n++) assertProblem(await api.redeem(ticket), 500, 'internal_error')
  await system.redis.set(resultKey(queuePrefix, id), result, 'KEEPTTL')
  expect(200, await api.redeem(ticket))
})

test('a job that fails, because no worker can open it, is started again by its ticket', async () => {
  const { queuePrefix } = system.namespace
  const account = await api.newAccount()
  const { ticket } = await whileFrozen(worker, async () => {
    const given = expect(202, await api.login(account, respondAsync))
    const key = jobKey(queuePrefix, given.ticket.split('.')[0])
    const data = JSON.parse((await system.redis.hget(key, 'data')) ?? '')
    await system.redis.hset(key, 'data', JSON.stringify({ ...data, sealed: `${data.sealed}x` }))
    return given
  })
  expect(200, await api.redeem(ticket))
})

test('a string that is no ticket of this service is refused', async () => {
  const { ticket } = expect(202, await api.register(newCredentials(), respondAsync))
  const other = expect(202, await api.register(newCredentials(), respondAsync))
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
    'x'.repeat(24_576),
  ]
  for (const forgery of forgeries) assertProblem(await api.redeem(forgery), 400, 'invalid_ticket')
  assertProblem(await api.redeem('x'.repeat(24_577)), 422, 'invalid_request')
  expect(201, await api.redeem(ticket))
})

test('the longest ticket that is given can be redeemed', async () => {
  // An address with quotes, and a password with characters that take two bytes each in JSON.
  const email = `"${'.'.repeat(62)}"@${'x.'.repeat(94)}x`
  const answer = await api.register({ email, password: `${newCredentials().password}${'"'.repeat(950)}` }, respondAsync)
  const { ticket } = expect(202, answer)
  expect(201, await api.redeem(ticket))
})

test('a ticket sealed by another service, or for another purpose, is refused', async () => {
  const { ticket } = expect(202, await api.register(newCredentials(), respondAsync))
  const [ofTicket = ''] = ticket.split('.')
  const forged = parseKeyring(newSealKey()).seal({ purpose: 'ticket', id: ofTicket }, {})
  assertProblem(await api.redeem(`${ofTicket}.${forged}`), 400, 'invalid_ticket')

  const held = expect(202, await api.login(await slowAccount(system.database, 1), respondAsync))
  const [id = ''] = held.ticket.split('.')
  const result = await until(() => system.redis.get(`${system.namespace.queuePrefix}:result:${id}`))
  assertProblem(await api.redeem(`${id}.${result}`), 400, 'invalid_ticket')
  expect(200, await api.redeem(held.ticket))
})
