// A Redis, or something in its place, that sends what nobody asked for.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { test } from 'vitest'
import { connectRedis } from '../../src/redis/connect.ts'
import { startFakeRedis } from '../fake-redis.ts'

/** Answers like a Redis that knows nothing. */
function answerOf(command: string): string {
  if (/hello/i.test(command)) return '%1\r\n$5\r\nproto\r\n:3\r\n'
  return /\r\ninfo\r\n/i.test(command) ? '$15\r\nredis_version:7\r\n' : '+OK\r\n'
}

const unrequested = [
  ...['$-1\r\n', '_\r\n', '>1\r\n$9\r\nsubscribe\r\n', '+OK\r\n', ':1\r\n', '!'],
  ...['\x00\xff\r\n', '*1\r\n*1\r\n$-1\r\n'],
]

for (const bytes of unrequested) {
  test.concurrent(`${JSON.stringify(bytes)} ends at most the connection, which is made again`, async (t) => {
    const { url, sockets } = await startFakeRedis(t, answerOf)
    const redis = connectRedis(url, 'producer').on('error', () => undefined)
    t.onTestFinished(() => redis.disconnect())
    await until(() => redis.status === 'ready')
    for (let n = 0; n < 2; n += 1) sockets[0]?.write(bytes)
    // An uncaught error would fail the test.
    await until(async () => redis.status === 'ready' && (await redis.set('a', 'b').catch(() => undefined)) === 'OK')
  })
}

test.concurrent('of many that come together the first ends the connection, and the others are not read', async (t) => {
  const { url, sockets } = await startFakeRedis(t, answerOf)
  const errors: Error[] = []
  const redis = connectRedis(url, 'producer').on('error', (error) => errors.push(error))
  t.onTestFinished(() => redis.disconnect())
  await until(() => redis.status === 'ready')
  sockets[0]?.write('>1\r\n$9\r\nsubscribe\r\n'.repeat(20))
  await until(() => sockets.length === 2 && redis.status === 'ready')
  assert.equal(errors.length, 1)
})
