import assert from 'node:assert/strict'
import { join } from 'node:path'
import { scratchDir } from '@spillway/infra/harness/namespace'
import { Keeper } from '@spillway/infra/processes/keeper'
import { startRedis } from '@spillway/infra/services/redis'
import { Redis } from 'ioredis'
import { test } from 'vitest'

test('it keeps jobs over a restart, evicts nothing, and asks for the password', async (t) => {
  const dir = await scratchDir(t)
  const keeper = new Keeper()
  t.onTestFinished(() => keeper.close())
  const start = () =>
    startRedis({
      keeper,
      dir: join(dir, 'redis'),
      logFile: join(dir, 'redis.log'),
      durable: true,
      password: 'a/b@c:"d"',
      say: () => {},
    })
  const first = await start()
  // redis-cli sends an empty user otherwise, which no server knows.
  assert.match(first.url, /^redis:\/\/default:[^@]+@127\.0\.0\.1:\d+$/)
  const client = new Redis(first.url)
  await client.set('kept', 'yes')
  assert.deepEqual(await client.config('GET', 'maxmemory-policy'), ['maxmemory-policy', 'noeviction'])
  client.disconnect()
  const { port } = new URL(first.url)
  const stranger = new Redis(Number(port), { enableReadyCheck: false })
  stranger.on('error', () => {})
  await assert.rejects(stranger.get('kept'), /NOAUTH/)
  stranger.disconnect()
  await first.close()

  const second = await start()
  const later = new Redis(second.url)
  assert.equal(await later.get('kept'), 'yes')
  later.disconnect()
  await second.close()
})
