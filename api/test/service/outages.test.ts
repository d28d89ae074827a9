// PostgreSQL or Redis is away, silent, or another one: prompt problems, nothing internal, recovery.

import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { withDoubles } from '@spillway/infra/harness/spillway'
import { until } from '@spillway/infra/processes/until'
import { test } from 'vitest'
import { gatedAccount, slowAccount } from '../account.ts'
import {
  type Answer,
  asIs,
  assertProblem,
  type Client,
  expect,
  keepTicket,
  newCredentials,
  respondAsync,
} from '../client.ts'
import { watchQueue } from '../queue.ts'
import { heldAnyway, lockOptions, locksAwaited, openSystem, readiness } from '../system.ts'

const system = await openSystem()
await system.worker({}, withDoubles)

test('without PostgreSQL: 503 at once, named by readiness, and well again when it is back', async (t) => {
  const { api, proxy } = await system.behindProxy(t, 'DATABASE_URL')
  const { account: credentials, ...tokens } = await api.signedIn()
  proxy.refuse()

  for (const answer of await Promise.all([
    api.login(credentials, asIs),
    api.register(newCredentials(), asIs),
    api.me(tokens.accessToken, asIs),
    api.refresh(tokens.refreshToken, asIs),
  ])) {
    assertUnavailable(answer)
  }
  assert.equal((await fetch(`${api.url}/healthz`)).status, 200)
  // Probes share the database's answer for a moment, and the gateway was seen ready just before.
  await checksBecome(api, { database: 'failing', queue: 'ok' })

  proxy.restore()
  await until(async () => (await readiness(api.url)).status === 'ok')
  expect(200, await api.refresh(tokens.refreshToken))
  expect(200, await api.login(credentials))
})

test('without a column that logins need a gateway is not ready, until the column is there; a lock does not count', async () => {
  const rename = (from: string, to: string) =>
    system.database.$executeRawUnsafe(`ALTER TABLE sessions RENAME ${from} TO ${to}`)
  await rename('device', 'other')
  const gateway = await system.gateway()
  try {
    await until(async () => (await readiness(gateway.url)).checks.database === 'failing')
  } finally {
    await rename('other', 'device')
  }
  await until(async () => (await readiness(gateway.url)).status === 'ok')
  await system.database.$transaction(async (locked) => {
    await locked.$executeRaw`LOCK TABLE sessions, users IN ACCESS EXCLUSIVE MODE`
    // An answer serves other probes for 250 ms.
    await sleep(300)
    await until(async () => (await readiness(gateway.url)).status === 'ok', { timeoutMs: 20_000 })
  }, lockOptions)
})

test('when PostgreSQL falls silent in mid-query, requests end as problems, not as hangs', async (t) => {
  const { api, proxy } = await system.behindProxy(t, 'DATABASE_URL', { DATABASE_POOL_SIZE: '1' })
  const credentials = await api.newAccount()
  proxy.freeze()
  for (const answer of await Promise.all([api.login(credentials, asIs), api.login(credentials, asIs)]))
    assertUnavailable(answer)
})

test('a result outlives PostgreSQL: its login gets a ticket, which stays good, and nothing is hashed twice', async (t) => {
  const { api, proxy } = await system.behindProxy(t, 'DATABASE_URL', {}, heldAnyway)
  const queue = watchQueue(system)
  const { account, open } = await gatedAccount(t, system.database)
  const before = await queue.added()
  const held = api.login(account, keepTicket)
  await queue.settled(0, 1)
  proxy.refuse()
  open()
  const { ticket } = expect(202, await held)
  // A moment later if Redis is not heard of at once.
  await until(async () => {
    const again = await api.redeem(ticket, asIs)
    assert.notEqual(expect(202, again).ticket, '')
    return again.headers.get('retry-after') === '1'
  })
  proxy.restore()
  await until(async () => (await api.redeem(ticket)).status === 200)
  assert.equal((await queue.added()).length, before.length + 1)
})

test('a ticket that was marked as used when PostgreSQL went away is good again when it is back, once', async (t) => {
  const { api, proxy } = await system.behindProxy(t, 'DATABASE_URL')
  const other = await system.gateway()
  const { ticket } = expect(202, await api.login(await slowAccount(system.database, 1), respondAsync))
  await until(() => system.redis.exists(`${system.namespace.queuePrefix}:result:${ticket.split('.')[0]}`))
  await system.database.$transaction(async (locked) => {
    await locked.$executeRaw`LOCK TABLE sessions IN ACCESS EXCLUSIVE MODE`
    const redeemed = api.redeem(ticket, keepTicket)
    await until(() => locksAwaited(system.database))
    proxy.refuse()
    expect(202, await redeemed)
    assertProblem(await other.api.redeem(ticket), 409, 'ticket_used')
  }, lockOptions)
  expect(202, await api.redeem(ticket, keepTicket))
  proxy.restore()
  // The statement that waited for the lock may have run after all: its session is this job's.
  expect(200, await api.redeem(ticket))
  assertProblem(await other.api.redeem(ticket), 409, 'ticket_used')
})

test('without Redis: 503 at once, what needs no queue goes on, and well again when it is back', async (t) => {
  const limits = { LIMIT_PER_ADDRESS: '1000', LIMIT_PER_ACCOUNT: '1000' }
  const { api, proxy } = await system.behindProxy(t, 'REDIS_URL', limits)
  const { account: credentials, ...tokens } = await api.signedIn()
  proxy.refuse()

  await until(async () => (await readiness(api.url)).checks.queue === 'failing')
  for (const answer of await Promise.all([api.login(credentials, asIs), api.register(newCredentials(), asIs)])) {
    assertUnavailable(answer)
  }
  expect(200, await api.me(tokens.accessToken))
  expect(200, await api.refresh(tokens.refreshToken))
  await checksBecome(api, { database: 'ok', queue: 'failing' })

  proxy.restore()
  await until(async () => (await api.login(credentials)).status === 200)
  await until(async () => (await readiness(api.url)).checks.queue === 'ok')
})

test('an answer stands, also when Redis goes away before its ticket is marked as used', async (t) => {
  const { api, proxy } = await system.behindProxy(t, 'REDIS_URL')
  const { email, password } = await slowAccount(system.database, 1)
  const { ticket } = expect(202, await api.login({ email, password }, respondAsync))
  await until(() => system.redis.exists(`${system.namespace.queuePrefix}:result:${ticket.split('.')[0]}`))
  const redeemed = await system.database.$transaction(async (locked) => {
    await locked.user.update({ where: { email }, data: { updatedAt: new Date() } })
    const answer = api.redeem(ticket)
    await until(() => locksAwaited(system.database))
    proxy.refuse()
    return { answer }
  }, lockOptions)
  expect(200, await redeemed.answer)
})

test('when Redis falls silent, requests end as problems, not as hangs', async (t) => {
  const { api, proxy } = await system.behindProxy(t, 'REDIS_URL', { LIMIT_PER_ADDRESS: '1000' })
  const credentials = await api.newAccount()
  proxy.freeze()
  const answer = await api.login(credentials, asIs)
  assertUnavailable(answer)
  proxy.refuse()
})

test('a failure of our own is a 500 that says nothing about it', async (t) => {
  const broken = await openSystem(t)
  await broken.worker()
  const { api } = await broken.gateway()
  const { refreshToken } = await api.signedIn()
  await broken.database.$executeRaw`ALTER TABLE sessions RENAME COLUMN token_hash TO mislaid`
  const answer = await api.refresh(refreshToken)
  assertProblem(answer, 500, 'internal_error')
  assert.deepEqual(answer.body, {
    type: 'about:blank',
    title: 'Internal Server Error',
    status: 500,
    code: 'internal_error',
    detail: 'The service could not answer because of an internal error',
  })
})

/** Waits until the readiness of a gateway is this; what is there may be late for a moment. */
async function checksBecome({ url }: Client, checks: object): Promise<void> {
  await until(async () => assert.deepEqual((await readiness(url)).checks, checks) ?? true)
}

/** Checks for a 503 that says when to come back, and nothing about what is away. */
function assertUnavailable(answer: Answer): void {
  assertProblem(answer, 503, 'unavailable')
  assert.deepEqual(Object.keys(answer.body).sort(), ['code', 'detail', 'status', 'title', 'type'])
  assert.equal(answer.headers.get('retry-after'), '1')
}
