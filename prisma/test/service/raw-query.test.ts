// SQL that goes past Prisma's client: the same connections and values as for what goes through it.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { connectDatabase, Prisma, poolUse, rawQuery } from '../../src/index.ts'
import { openDatabases, opened } from '../databases.ts'

const { migratedUrl } = await openDatabases()

test('rows come by the names of their columns, as the values they are', async (t) => {
  const database = opened(t, migratedUrl)
  const bytes = new Uint8Array([0, 127, 255])
  const at = new Date('2026-01-02T03:04:05.678Z')
  const sql = Prisma.sql`
    SELECT ${'text'}::text AS "someText", ${7}::int AS n, true AS yes, false AS no, NULL::text AS nothing,
      ${bytes}::bytea = '\\x007fff' AS "sameBytes", extract(epoch FROM ${at}::timestamptz)::float8 * 1000 AS ms
    FROM generate_series(1, 2)`
  const row = { someText: 'text', n: 7, yes: true, no: false, nothing: null, sameBytes: true, ms: at.getTime() }
  assert.deepEqual(await rawQuery(database, sql), [row, row])
  assert.deepEqual(await rawQuery(database, Prisma.sql`SELECT 1 AS n WHERE false`), [])
})

test('it opens the pool when it comes first, and shares it with the client, which waits for it when it closes', async () => {
  const database = connectDatabase({ url: migratedUrl, poolSize: 1, connectionTimeoutMs: 60_000 })
  const pid = Prisma.sql`SELECT pg_backend_pid() AS pid`
  const [first] = await rawQuery<{ pid: number }>(database, pid)
  assert.deepEqual(await database.$queryRaw(pid), [first])
  assert.deepEqual(poolUse(database), { busy: 0, idle: 1, waiting: 0 })

  const inHand = rawQuery(database, Prisma.sql`SELECT 'done' || pg_sleep(0.1)::text AS said`)
  await new Promise(setImmediate)
  await database.$disconnect()
  assert.deepEqual(await inHand, [{ said: 'done' }])
  assert.deepEqual(poolUse(database), { busy: 0, idle: 0, waiting: 0 })
})
