// Logins that taught nobody anything count for nothing: their tickets ended without an answer, nobody asked for it, or the gateway failed.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { startProxy } from '@spillway/infra/rig/tcp-proxy'
import { afterAll, test } from 'vitest'
import { gatedAccount, nameInRedis } from '../account.ts'
import {
  assertProblem,
  type Call,
  type Credentials,
  expect,
  keepTicket,
  login,
  newAccount,
  newCredentials,
  redeem,
  respondAsync,
} from '../client.ts'
import { watchQueue } from '../queue.ts'
import { openSystem, whileFrozen } from '../system.ts'

// Its own worker: what hashes of other files took would make a ticket of 3 s impossible.
const system = await openSystem()
const proxy = await startProxy(system.namespace.databaseUrl)
afterAll(async () => {
  await system.close()
  await proxy.close()
})
const worker = await system.worker({ SPILLWAY_TEST_HASHES: 'true' })
/** After one failure anyone is asked for a challenge, and a known device is unknown. */
const strict = { GUESSES_PER_ACCOUNT: '1', GUESSES_PER_DEVICE: '1' }
const { url } = await system.gateway(strict)
const { url: hasty } = await system.gateway({ ...strict, TICKET_TTL_MS: '3000', LOGIN_WAIT_MS: '0' })
const { database, redis, namespace } = system
const queue = watchQueue(system)
const keyOf = (kind: string, { email }: Credentials) => `${namespace.queuePrefix}:${kind}:${nameInRedis(system, email)}`
const withToken = (deviceToken: string, more: Call = {}): Call => ({
  ...more,
  headers: { ...more.headers, 'spillway-device': deviceToken },
})

/** A login whose ticket expires while there is no worker. */
async function expire(credentials: Credentials, options: Call): Promise<void> {
  const { ticket } = expect(202, await login(hasty, credentials, options))
  await until(async () => (await redeem(hasty, ticket)).status === 410, { what: 'the end of the ticket' })
}

test('whoever sends a login again after each expired ticket is neither delayed nor challenged, nor loses the known device', async () => {
  const owner = await newAccount(url)
  const { deviceToken } = expect(200, await login(url, owner))
  await whileFrozen(worker, async () => {
    for (let n = 0; n < 3; n += 1) await expire(owner, keepTicket)
    for (let n = 0; n < 3; n += 1) await expire(owner, withToken(deviceToken, keepTicket))
  })
  expect(200, await login(url, owner))
  // A failure makes strangers of all others; the device is known all the same.
  assertProblem(await login(url, { ...owner, password: 'a guess' }), 401, 'invalid_credentials')
  assertProblem(await login(url, owner), 429, 'challenge_required')
  expect(200, await login(url, owner, withToken(deviceToken)))
})

test('a login whose ticket nobody redeems counts until its time is over, and then no more', async () => {
  const guess = newCredentials()
  expect(202, await login(url, guess, respondAsync))
  assertProblem(await login(url, guess), 429, 'challenge_required')
  const pending = keyOf('guesses:pending', guess)
  const [attempt = ''] = await redis.zrange(pending, '0', '-1')
  assert.ok((await redis.pttl(pending)) > 60_000)
  // As it is when its ticket has expired.
  await redis.zadd(pending, '1', attempt)
  assertProblem(await login(url, guess), 401, 'invalid_credentials')
  assertProblem(await login(url, guess), 429, 'challenge_required')
})

test('a wrong password of a ticket counts, though its attempt has lapsed, and once', async () => {
  const guess = newCredentials()
  const { ticket } = expect(202, await login(url, guess, respondAsync))
  await redis.del(keyOf('guesses:pending', guess))
  await until(async () => (await redeem(url, ticket)).status === 401)
  await until(async () => (await redis.hget(keyOf('guesses', guess), 'failures')) === '1')
  assertProblem(await redeem(url, ticket), 409, 'ticket_used')
  assert.equal(await redis.hget(keyOf('guesses', guess), 'failures'), '1')
})

test('a login whose answer the gateway could not give gets a ticket, and counts for nothing once it is redeemed', async (t) => {
  const { url: failing } = await system.gateway({ ...strict, DATABASE_URL: proxy.url, LOGIN_WAIT_MS: '50000' })
  const { account: owner, open } = await gatedAccount(t, database)
  const answer = login(failing, owner, keepTicket)
  await queue.settled(0, 1)
  assert.equal(await redis.zcard(keyOf('guesses:pending', owner)), 1)
  proxy.refuse()
  open()
  const { ticket } = expect(202, await answer.finally(() => proxy.restore()))
  await until(async () => (await redeem(failing, ticket)).status === 200)
  await until(async () => (await redis.exists(keyOf('guesses:pending', owner), keyOf('guesses', owner))) === 0)
})
