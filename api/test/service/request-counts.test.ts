// Counts of requests in Redis: a window has an end, and nothing moves it.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { createNamespace } from '@spillway/infra/harness/namespace'
import { until } from '@spillway/infra/processes/until'
import { startOwnRedis } from '@spillway/infra/test/own-redis'
import { connectRedis, parseKeyring } from '@spillway/queue/client'
import { afterAll, test } from 'vitest'
import { countIn } from '../../src/limits/limits.ts'
import { newRefreshToken, RefreshTokenTags } from '../../src/sessions/sessions.ts'
import { assertProblem } from '../client.ts'
import { openSystem, readiness } from '../system.ts'

const namespace = await createNamespace()
const redis = connectRedis(namespace.redisUrl, 'consumer')
afterAll(async () => {
  redis.disconnect()
  await namespace.close()
})
const own = { connection: redis, countFailed() {} }
const countRequest = (key: string) => countIn(60_000, key, own)
const key = (name: string) => `${namespace.queuePrefix}:limit:${name}`

test('a window ends when it would have, however often somebody knocks meanwhile', async () => {
  const knocked = key('knocked')
  assert.deepEqual(await countRequest(knocked), { count: 1, resetS: 60 })
  // As after half a minute.
  await redis.pexpire(knocked, 30_000)
  for (const expected of [2, 3, 4]) {
    const { count, resetS } = await countRequest(knocked)
    assert.ok(count === expected && resetS <= 30, `${count} for ${resetS} s`)
  }
  assert.ok((await redis.pttl(knocked)) <= 30_000)
  await redis.pexpire(knocked, 100)
  await until(async () => (await redis.exists(knocked)) === 0)
  assert.deepEqual(await countRequest(knocked), { count: 1, resetS: 60 })
})

test('a counter that would live longer than its window ends with the window', async () => {
  const lasting = key('lasting')
  await redis.set(lasting, 7, 'EX', 86_400)
  assert.deepEqual(await countRequest(lasting), { count: 8, resetS: 60 })
  assert.ok((await redis.pttl(lasting)) <= 60_000)
})

// A count that fails although Redis answers: its request is let in, and the log says so.

const server = await startOwnRedis()
afterAll(() => server.close())
const system = await openSystem()

test('requests that Redis refuses to count are let in and logged, and counted when it does again', async () => {
  const { api, waitForLog } = await system.gatewayProcess({ REDIS_URL: server.url, LIMIT_REFRESH_PER_ADDRESS: '1' })
  await until(async () => (await readiness(api.url)).checks.queue === 'ok')
  // Of no session, and tagged as ours: others are not counted.
  const tags = new RefreshTokenTags(parseKeyring(system.environment.SPILLWAY_SEAL_KEYS ?? ''))
  const token = tags.tag(newRefreshToken(randomUUID()))
  const ask = () => api.refresh(token)
  assertProblem(await ask(), 401, 'invalid_refresh_token')
  await server.command('ACL', 'SETUSER', 'default', '-incr')
  assertProblem(await ask(), 401, 'invalid_refresh_token')
  const { level, times } = await waitForLog(({ msg }) => msg === 'requests could not be counted')
  assert.deepEqual({ level, times }, { level: 'warn', times: 1 })
  await server.command('ACL', 'SETUSER', 'default', '+incr')
  assertProblem(await ask(), 429, 'too_many_requests')
})
