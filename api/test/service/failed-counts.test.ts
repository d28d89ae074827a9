// A count that fails although Redis answers: its request is let in, and the log says so.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { until } from '@spillway/infra/processes/until'
import { startOwnRedis } from '@spillway/infra/test/own-redis'
import { parseKeyring } from '@spillway/queue/queue-client'
import { parseRedisServers } from '@spillway/queue/redis/servers'
import { afterAll, test } from 'vitest'
import { newRefreshToken, RefreshTokenTags } from '../../src/sessions/refresh-tokens.ts'
import { assertProblem, refresh } from '../client.ts'
import { openSystem, readiness } from '../system.ts'

const server = await startOwnRedis()
const system = await openSystem()
afterAll(async () => {
  await system.close()
  await server.close()
})

test('requests that Redis refuses to count are let in and logged, and counted when it does again', async () => {
  const { url, waitForLog } = await system.gatewayProcess({ REDIS_URL: server.url, LIMIT_REFRESH_PER_ADDRESS: '1' })
  await until(async () => (await readiness(url)).checks.queue === 'ok')
  // Of no session, and tagged as ours: others are not counted.
  const tags = new RefreshTokenTags(parseKeyring(system.environment.SPILLWAY_SEAL_KEYS ?? ''))
  const token = tags.tag(newRefreshToken(randomUUID()))
  const ask = () => refresh(url, token)
  assertProblem(await ask(), 401, 'invalid_refresh_token')
  await server.command('ACL', 'SETUSER', 'default', '-incr')
  assertProblem(await ask(), 401, 'invalid_refresh_token')
  const { level, redis, times } = await waitForLog(({ msg }) => msg === 'requests could not be counted')
  assert.deepEqual(
    { level, redis, times },
    { level: 'warn', redis: parseRedisServers(server.url)[0].address, times: 1 },
  )
  await server.command('ACL', 'SETUSER', 'default', '+incr')
  assertProblem(await ask(), 429, 'too_many_requests')
})
