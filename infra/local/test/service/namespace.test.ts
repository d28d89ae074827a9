import assert from 'node:assert/strict'
import { Redis } from 'ioredis'
import pg from 'pg'
import { test } from 'vitest'
import { createNamespace } from '../../src/rig/namespace.ts'
import { databaseOf, query } from '../../src/services/query.ts'

test('namespaces made at once are migrated, and see nothing of each other', async () => {
  const namespaces = await Promise.all(Array.from({ length: 4 }, () => createNamespace()))
  assert.equal(new Set(namespaces.map(({ queuePrefix }) => queuePrefix)).size, 4)
  const insert =
    "INSERT INTO users (id, email, password_hash, updated_at) VALUES (gen_random_uuid(), 'a@b.test', 'x', now())"
  await Promise.all(namespaces.map(({ databaseUrl }) => query(databaseUrl, insert)))
  for (const { databaseUrl } of namespaces) assert.equal((await query(databaseUrl, 'SELECT * FROM users')).length, 1)
  await Promise.all(namespaces.map(({ close }) => close()))
})

test('closing deletes the database and the keys, and only those', async (t) => {
  const [gone, kept] = await Promise.all([createNamespace(), createNamespace()])
  t.onTestFinished(() => kept.close())
  const redis = new Redis(gone.redisUrl)
  t.onTestFinished(() => redis.disconnect())
  await redis.mset(`${gone.queuePrefix}:a`, '1', `${gone.queuePrefix}:b`, '2', `${kept.queuePrefix}:a`, '3')
  await gone.close()
  assert.deepEqual(await redis.keys(`${gone.queuePrefix}*`), [])
  assert.equal(await redis.get(`${kept.queuePrefix}:a`), '3')
  await assert.rejects(query(gone.databaseUrl, 'SELECT 1'), /does not exist/)
  await query(kept.databaseUrl, 'SELECT 1')
})

test('a connection that was left open is named', async () => {
  const namespace = await createNamespace({ disconnectMs: 100 })
  const leaked = new pg.Client({ connectionString: namespace.databaseUrl, application_name: 'forgetful' })
  leaked.on('error', () => {})
  await leaked.connect()
  await leaked.query('SELECT 42')
  await assert.rejects(namespace.close(), /left open: forgetful .* last: SELECT 42/)
  await assert.rejects(query(namespace.databaseUrl, 'SELECT 1'), new RegExp(databaseOf(namespace.databaseUrl)))
  await leaked.end().catch(() => {})
})
