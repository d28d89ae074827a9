// How the eviction policy of a Redis server is reported. The tests use a connection that is never opened.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { Redis } from 'ioredis'
import { test, vi } from 'vitest'
import { EvictionWatch } from '../../src/redis/eviction.ts'

const NOT_ALLOWED = new Error('NOPERM this user has no permissions')

/** A watch on a server that says this of itself, and the lines of its log. */
function watchOn(server: { info: string; config?: string[] }) {
  const redis = new Redis({ lazyConnect: true })
  redis.status = 'ready'
  vi.spyOn(redis, 'info').mockImplementation(async () => server.info)
  vi.spyOn(redis, 'config').mockImplementation(async () => server.config ?? Promise.reject(NOT_ALLOWED))
  const lines: [level: string, msg: string | undefined][] = []
  const told = (level: string) => (_: unknown, msg?: string) => void lines.push([level, msg])
  const log = { error: told('error'), warn: told('warn'), info: told('info'), debug: told('debug') }
  return { watch: new EvictionWatch(redis, 'redis:6379', log), redis, lines }
}

const MAY_EVICT = 'redis may evict counters of guesses, jobs and results: set its maxmemory-policy to noeviction'
const UNKNOWN = 'redis does not tell whether it evicts keys: its maxmemory-policy must be noeviction'

test.each([
  ['INFO has the policy', { info: 'maxmemory_policy:volatile-lru\r\n' }, 'possible', [['warn', MAY_EVICT]]],
  ['CONFIG alone has it', { info: '', config: ['maxmemory-policy', 'allkeys-lru'] }, 'possible', [['warn', MAY_EVICT]]],
  ['neither tells it', { info: '' }, 'unknown', [['warn', UNKNOWN]]],
  ['nothing is evicted', { info: 'maxmemory_policy:noeviction\r\n' }, 'none', []],
])('where %s', async (_, server, state, expected) => {
  const { watch, lines } = watchOn(server)
  await until(() => watch.state() === state)
  assert.deepEqual(lines, expected)
})

test('a change is seen when the connection is ready again, and told once', async () => {
  const server = { info: 'maxmemory_policy:allkeys-lru\r\n' }
  const { watch, redis, lines } = watchOn(server)
  await until(() => watch.state() === 'possible')
  server.info = 'maxmemory_policy:noeviction\r\n'
  for (let n = 0; n < 2; n += 1) redis.emit('ready')
  await until(() => watch.state() === 'none')
  assert.deepEqual(lines, [
    ['warn', MAY_EVICT],
    ['info', 'redis evicts no keys any more'],
  ])
})
