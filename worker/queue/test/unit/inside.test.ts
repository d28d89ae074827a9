// What reaches into others' private parts is in one room, and the pause before reconnecting has the name that it knows.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { test } from 'vitest'
import { unrefRedis } from '../../src/inside/ioredis.ts'

const root = fileURLToPath(new URL('../../../..', import.meta.url))
const PRIVATE = /Reflect\.get\((?!globalThis)\w+, '|\.prototype\.\w+ =|ioredis\/built\/|\b_(handle|getActiveHandles)\b/

test('no file outside the room reaches into private parts', () => {
  const files = ['api/src', 'worker/src', 'worker/client/src', 'worker/queue/src', 'worker/common/src'].flatMap((dir) =>
    readdirSync(join(root, dir), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.c?ts$/.test(name))
      .map((name) => join(dir, name)),
  )
  const reaching = files.filter((file) => PRIVATE.test(readFileSync(join(root, file), 'utf8')))
  assert.deepEqual(
    reaching.toSorted().filter((file) => !file.startsWith('worker/queue/src/inside/')),
    [],
  )
  assert.equal(reaching.length, 3)
})

test('the pause before reconnecting does not keep the process alive', async () => {
  const redis = new Redis({ host: '127.0.0.1', port: 1, retryStrategy: () => 60_000 })
  redis.on('error', () => undefined)
  unrefRedis(redis)
  await new Promise((resolve) => redis.once('reconnecting', resolve))
  const timer: unknown = Reflect.get(redis, 'reconnectTimeout')
  assert.ok(timer instanceof Object && 'hasRef' in timer && typeof timer.hasRef === 'function')
  assert.equal(timer.hasRef(), false)
  redis.disconnect()
})
