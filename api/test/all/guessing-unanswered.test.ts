// Logins that taught nobody anything count for nothing: their clients went away before a worker
// took them, their tickets ended without an answer, nobody asked for it, or the gateway failed.
import assert from 'node:assert/strict'
import { readMetric } from '@spillway/infra/harness/api-client'
import { withDoubles } from '@spillway/infra/harness/spillway'
import { startProxy } from '@spillway/infra/harness/tcp-proxy'
import { until } from '@spillway/infra/processes/until'
import { afterAll, test } from 'vitest'
import { delayStrangers, gatedAccount, nameInRedis } from '../account.ts'
import {
  asIs,
  assertProblem,
  type Call,
  type Credentials,
  expect,
  keepTicket,
  newCredentials,
  respondAsync,
} from '../client.ts'
import { watchQueue } from '../queue.ts'
import { heldAnyway, lockOptions, locksAwaited, openSystem, whileFrozen } from '../system.ts'

// Its own worker: what hashes of other files took would make a ticket of 3 s impossible.
const system = await openSystem()
const proxy = await startProxy(system.namespace.databaseUrl)
afterAll(async () => {
  await system.close()
  await proxy.close()
})
const worker = await system.worker({}, withDoubles)
/** After one failure anyone has to wait, and a known device is unknown. */
const strict = { GUESSES_PER_ACCOUNT: '1', GUESSES_PER_DEVICE: '1' }
const { api } = await system.gateway(strict)
const { api: hasty } = await system.gateway({ ...strict, TICKET_TTL_MS: '3000', LOGIN_WAIT_MS: '0' })
/** Logins are held for longer than the slow ones of these tests let a gateway predict. */
const patience = { ...strict, DATABASE_URL: proxy.url, LOGIN_WAIT_MS: '50000' }
const { api: patient, opsUrl } = await system.gateway(patience, heldAnyway)
const { database, redis, namespace } = system
const queue = watchQueue(system)
const keyOf = (kind: string, { email }: Credentials) => `${namespace.queuePrefix}:${kind}:${nameInRedis(system, email)}`
const withToken = (deviceToken: string, more: Call = {}): Call => ({
  ...more,
  headers: { ...more.headers, 'spillway-device': deviceToken },
})

/** A login whose ticket expires while there is no worker. */
async function expire(credentials: Credentials, options: Call): Promise<void> {
  const { ticket } = expect(202, await hasty.login(credentials, options))
  await until(async () => (await hasty.redeem(ticket, asIs)).status === 410, { what: 'the end of the ticket' })
}

test('whoever sends a login again after each expired ticket is not delayed, nor loses the known device', async () => {
  const { account: owner, deviceToken } = await api.signedIn()
  await whileFrozen(worker, async () => {
    for (let n = 0; n < 3; n += 1) await expire(owner, keepTicket)
    for (let n = 0; n < 3; n += 1) await expire(owner, withToken(deviceToken, keepTicket))
  })
  expect(200, await api.login(owner))
  await delayStrangers(system, owner.email)
  assertProblem(await api.login(owner), 429, 'too_many_requests')
  expect(200, await api.login(owner, withToken(deviceToken)))
})

test('a login whose ticket nobody redeems counts until its time is over, and then no more', async () => {
  const guess = newCredentials()
  expect(202, await api.login(guess, respondAsync))
  assert.equal(await failuresOf(guess), 1)
  const pending = keyOf('guesses:pending', guess)
  const [attempt = ''] = await redis.zrange(pending, '0', '-1')
  assert.ok((await redis.pttl(pending)) > 60_000)
  // As it is when its ticket has expired.
  await redis.zadd(pending, '1', attempt)
  assertProblem(await api.login(guess), 401, 'invalid_credentials')
  await until(async () => (await failuresOf(guess)) === 1, { what: 'the one failure counted' })
})

test('a wrong password of a ticket counts, though its attempt has lapsed, and once', async () => {
  const guess = newCredentials()
  const { ticket } = expect(202, await api.login(guess, respondAsync))
  await redis.del(keyOf('guesses:pending', guess))
  await until(async () => (await api.redeem(ticket)).status === 401)
  await until(async () => (await redis.hget(keyOf('guesses', guess), 'failures')) === '1')
  assertProblem(await api.redeem(ticket), 409, 'ticket_used')
  assert.equal(await redis.hget(keyOf('guesses', guess), 'failures'), '1')
})

test('a login whose answer the gateway could not give gets a ticket, and counts for nothing once it is redeemed', async (t) => {
  const { account: owner, open } = await gatedAccount(t, database)
  const answer = patient.login(owner, keepTicket)
  await queue.settled(0, 1)
  assert.equal(await redis.zcard(keyOf('guesses:pending', owner)), 1)
  proxy.refuse()
  open()
  const { ticket } = expect(202, await answer.finally(() => proxy.restore()))
  await until(async () => (await patient.redeem(ticket)).status === 200)
  await until(async () => (await redis.exists(keyOf('guesses:pending', owner), keyOf('guesses', owner))) === 0)
})

/** A login whose client can go away. `leave` resolves once the gateway has noticed. */
function loginToLeave(credentials: Credentials) {
  const client = new AbortController()
  const answer = patient.login(credentials, { signal: client.signal })
  const gone = () => readMetric(opsUrl, 'spillway_http_requests_total', 'outcome="client_gone"')
  return {
    async leave(): Promise<void> {
      const before = await gone()
      client.abort()
      await assert.rejects(answer, { name: 'AbortError' })
      await until(async () => (await gone()) > before, { what: 'the gateway noticing' })
    },
  }
}

/** Failures, and what counts as one until it is settled or lapses. */
async function failuresOf(account: Credentials): Promise<number> {
  const pending = await redis.zcard(keyOf('guesses:pending', account))
  return Number(await redis.hget(keyOf('guesses', account), 'failures')) + pending
}

const takenBack = (credentials: Credentials) =>
  until(async () => (await failuresOf(credentials)) === 0, { what: 'the attempt taken back' })

test('a login whose job was cancelled before a worker took it counts for nothing', async (t) => {
  const { account, open } = await gatedAccount(t, database)
  const ahead = patient.login(account)
  await queue.settled(0, 1)
  const guess = newCredentials()
  const left = loginToLeave(guess)
  await queue.settled(1, 1)
  assert.equal(await failuresOf(guess), 1)
  await left.leave()
  await takenBack(guess)
  open()
  await ahead
  assertProblem(await patient.login(guess), 401, 'invalid_credentials')
})

test('a login that ended without a job counts for nothing, though its client had gone before', async () => {
  const guess = newCredentials()
  const whileLocked = async () => {
    const left = loginToLeave(guess)
    await until(() => locksAwaited(database), { what: 'the login waiting for its account' })
    assert.equal(await failuresOf(guess), 1)
    await left.leave()
    proxy.refuse()
    await takenBack(guess)
  }
  try {
    await database.$transaction(async (locked) => {
      await locked.$executeRaw`LOCK TABLE users IN ACCESS EXCLUSIVE MODE`
      await whileLocked()
    }, lockOptions)
  } finally {
    proxy.restore()
  }
})

test('a login that a worker took counts, though its client went away', async (t) => {
  const { account, open } = await gatedAccount(t, database)
  const left = loginToLeave(account)
  await queue.settled(0, 1)
  await left.leave()
  open()
  await queue.settled(0, 0)
  assert.equal(await failuresOf(account), 1)
})
