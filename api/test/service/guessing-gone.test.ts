// Logins whose clients went away before the answer: only those that a worker took count as failures.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { readMetric } from '@spillway/infra/rig/api-client'
import { startProxy } from '@spillway/infra/rig/tcp-proxy'
import { afterAll, test } from 'vitest'
import { gatedAccount, nameInRedis } from '../account.ts'
import { assertProblem, type Credentials, login, newCredentials } from '../client.ts'
import { locksAwaited } from '../locks.ts'
import { watchQueue } from '../queue.ts'
import { shareSystem } from '../system.ts'

const system = await shareSystem()
const proxy = await startProxy(system.namespace.databaseUrl)
afterAll(async () => {
  await system.close()
  await proxy.close()
})
/** Logins are held for longer than the slow ones of these tests let a gateway predict. */
const patient = { GUESSES_PER_ACCOUNT: '1', DATABASE_URL: proxy.url, LOGIN_WAIT_MS: '50000' }
const { url, opsUrl } = await system.gateway(patient)
const { database, redis, namespace } = system
const queue = watchQueue(system)

/** A login whose client can go away. `leave` resolves once the gateway has noticed. */
function loginToLeave(credentials: Credentials) {
  const client = new AbortController()
  const answer = login(url, credentials, { signal: client.signal })
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
async function failuresOf({ email }: Credentials): Promise<number> {
  const keyOf = (kind: string) => `${namespace.queuePrefix}:${kind}:${nameInRedis(system, email)}`
  const pending = await redis.zcard(keyOf('guesses:pending'))
  return Number(await redis.hget(keyOf('guesses'), 'failures')) + pending
}
const takenBack = (credentials: Credentials) =>
  until(async () => (await failuresOf(credentials)) === 0, { what: 'the attempt taken back' })

test('a login whose job was cancelled before a worker took it counts for nothing', async (t) => {
  const { account, open } = await gatedAccount(t, database)
  const ahead = login(url, account)
  await queue.settled(0, 1)
  const guess = newCredentials()
  const left = loginToLeave(guess)
  await queue.settled(1, 1)
  assert.equal(await failuresOf(guess), 1)
  await left.leave()
  await takenBack(guess)
  open()
  await ahead
  assertProblem(await login(url, guess), 401, 'invalid_credentials')
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
    await database.$transaction(
      async (locked) => {
        await locked.$executeRaw`LOCK TABLE users IN ACCESS EXCLUSIVE MODE`
        await whileLocked()
      },
      { timeout: 60_000 },
    )
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
