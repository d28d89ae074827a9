import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:net'
import { listening } from '@spillway/infra/processes/port'
import { until } from '@spillway/infra/processes/until'
import { test } from 'vitest'
import { connectForScripts } from '../../src/connection.ts'
import { connectDatabase, fillPool, Prisma, poolUse, rawQuery } from '../../src/index.ts'
import { migrate } from '../../src/migrate.ts'
import { openDatabases, opened, pooled, rows } from '../databases.ts'

const { emptyDatabase, migratedUrl } = await openDatabases()

const connections = `SELECT count(*)::int FROM pg_stat_activity
  WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = 'spillway'`

/** PostgreSQL lists a closed connection for a moment; one that was left open would stay. */
const untilNoneIsLeft = () => until(async () => (await rows(migratedUrl, connections))[0]?.[0] === 0)

test('the pool holds no more than its size, and closing waits for queries in hand and leaves no connection', async () => {
  const database = connectDatabase({ url: migratedUrl, poolSize: 3, connectionTimeoutMs: 60_000 })
  const queries = Array.from({ length: 12 }, () => database.$queryRaw`SELECT pg_sleep(0.05)::text`)
  await Promise.all(queries)
  assert.deepEqual(await rows(migratedUrl, connections), [[3]])

  // A query of Prisma's starts when it is awaited.
  const inHand = database.$queryRaw`SELECT 'done' || pg_sleep(0.1)::text AS said`.then((rows) => rows)
  await new Promise(setImmediate)
  await database.$disconnect()
  assert.deepEqual(await inHand, [{ said: 'done' }])
  await untilNoneIsLeft()
})

test('a filled pool is whole before the first query, and its connections stay open until it is closed', async () => {
  const database = connectDatabase({ url: migratedUrl, poolSize: 3, connectionTimeoutMs: 60_000 })
  await fillPool(database)
  assert.deepEqual(poolUse(database), { busy: 0, idle: 3, waiting: 0 })
  assert.deepEqual(await rows(migratedUrl, connections), [[3]])
  const ended = `SELECT count(pg_terminate_backend(pid))::int FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = 'spillway'`
  assert.deepEqual(await rows(migratedUrl, ended), [[3]])
  await until(() => poolUse(database).idle === 0)
  assert.deepEqual(await database.$queryRaw`SELECT 1 AS n`, [{ n: 1 }])
  await database.$disconnect()
  await untilNoneIsLeft()
})

for (const [way, wayUrl] of [
  ['', (url: string) => url],
  [', also through a pooler', pooled],
] as const) {
  test(`times mean the same here and in SQL, whatever zone and style the database is set to${way}`, async (t) => {
    const url = await emptyDatabase()
    await migrate(wayUrl(url))
    const name = new URL(url).pathname.slice(1)
    await rows(url, `ALTER DATABASE "${name}" SET timezone = 'Asia/Tokyo'`)
    await rows(url, `ALTER DATABASE "${name}" SET datestyle = 'German'`)
    const database = opened(t, wayUrl(url))
    const createdAt = new Date('2026-01-02T03:04:05.678Z')
    const id = '00000000-0000-4000-8000-000000000000'
    await database.user.create({ data: { id, email: 'a@example.test', passwordHash: 'x', createdAt } })
    const [row] = await database.$queryRaw<{ ms: number; now: Date }[]>`
      SELECT extract(epoch FROM created_at)::float8 * 1000 AS ms, now() AS now FROM users`
    assert.ok(row)
    assert.equal(row.ms, createdAt.getTime())
    assert.ok(Math.abs(row.now.getTime() - Date.now()) < 60_000)
    assert.deepEqual((await database.user.findUniqueOrThrow({ where: { id } })).createdAt, createdAt)
    const [raw] = await rawQuery<{ at: string }>(database, Prisma.sql`SELECT created_at AS at FROM users`)
    assert.deepEqual(new Date(raw?.at ?? ''), createdAt)
  })
}

test("a role's schema, search path, isolation and time limit for locks change nothing", async (t) => {
  const role = `role_${migratedUrl.slice(-12)}`
  await rows(migratedUrl, `CREATE ROLE ${role} LOGIN PASSWORD 'hush'`)
  const url = new URL(await emptyDatabase(role))
  await rows(url.href, `CREATE SCHEMA ${role} AUTHORIZATION ${role}`)
  ;[url.username, url.password] = [role, 'hush']
  assert.notEqual((await migrate(url.href)).applied.length, 0)
  await rows(url.href, `ALTER ROLE ${role} SET search_path = ${role}`)
  await rows(url.href, `ALTER ROLE ${role} SET default_transaction_isolation = 'serializable'`)
  await rows(url.href, `ALTER ROLE ${role} SET lock_timeout = '10ms'`)
  assert.deepEqual((await migrate(url.href)).applied, [])
  const database = connectDatabase({ url: url.href, poolSize: 1, connectionTimeoutMs: 60_000 })
  t.onTestFinished(() => database.$disconnect())
  await fillPool(database)
  assert.equal(await database.user.count(), 0)
  assert.deepEqual(await rawQuery(database, Prisma.sql`SHOW transaction_isolation`), [
    { transaction_isolation: 'read committed' },
  ])
  assert.deepEqual(await rawQuery(database, Prisma.sql`SHOW lock_timeout`), [{ lock_timeout: '0' }])
  await assert.rejects(migrate(pooled(url.href)), /its search_path begins with another schema; grant/)
})

test('a database that cannot hold all of Unicode is refused in one sentence, before anything is made', async (t) => {
  const name = `latin_${randomUUID()}`
  await rows(
    migratedUrl,
    `CREATE DATABASE "${name}" ENCODING 'LATIN1' LOCALE 'C' LOCALE_PROVIDER libc TEMPLATE template0`,
  )
  t.onTestFinished(async () => void (await rows(migratedUrl, `DROP DATABASE "${name}"`)))
  const url = new URL(name, migratedUrl).href
  await assert.rejects(migrate(url), /its encoding is LATIN1; create it with ENCODING 'UTF8'/)
  assert.deepEqual(await rows(url, `SELECT to_regclass('_prisma_migrations')::text`), [[null]])
})

test('a connection is opened with nothing that a pooler refuses, where the URL names one', async (t) => {
  const asked = async (wayUrl: (url: string) => string) => [
    await openingSettings((url) => opened(t, wayUrl(url)).user.count()),
    await openingSettings((url) => connectForScripts(wayUrl(url))),
  ]
  for (const settings of await asked((url) => url)) assert.match(settings.get('options') ?? '', /^-c timezone=UTC /)
  for (const settings of await asked(pooled)) {
    settings.delete('application_name')
    assert.deepEqual([...settings.keys()].sort(), ['client_encoding', 'database', 'user'])
  }
})

test('settings in the URL are kept', async (t) => {
  const url = new URL(migratedUrl)
  url.searchParams.set('schema', 'public')
  url.searchParams.set('options', '-c work_mem=5MB')
  const database = opened(t, url.href)
  assert.deepEqual(
    await database.$queryRaw`SELECT current_setting('work_mem') AS memory, current_setting('timezone') AS zone`,
    [{ memory: '5MB', zone: 'UTC' }],
  )
})

const prepared = `SELECT count(*)::int AS count FROM pg_prepared_statements`

test('a statement is prepared once for a connection, unless the URL names a pooler or the caller wants no plan', async (t) => {
  for (const [url, preparesStatements, expected] of [
    [migratedUrl, true, 3],
    [migratedUrl, false, 0],
    [pooled(migratedUrl), true, 0],
  ] as const) {
    const database = opened(t, url, { poolSize: 1, preparesStatements })
    for (const email of ['a@example.test', 'b@example.test']) await database.user.findUnique({ where: { email } })
    for (const n of [1, 2]) await rawQuery(database, Prisma.sql`SELECT ${n}::int AS n`)
    assert.deepEqual(await database.$queryRawUnsafe(prepared), [{ count: expected }])
  }
})

/** The settings in the packet that opens the first connection to this URL, by name. It is then hung up on. */
export async function openingSettings(connect: (url: string) => Promise<unknown>): Promise<Map<string, string>> {
  const settings = new Map<string, string>()
  const server = createServer((socket) => {
    socket.once('data', (packet) => {
      // Its length and the version of the protocol come first; a zero ends each name, each value,
      // and the whole.
      const words = packet.toString('utf8', 8).split('\0')
      for (let at = 0; words[at]; at += 2) settings.set(words[at] ?? '', words[at + 1] ?? '')
      socket.destroy()
    })
  })
  await connect(`postgresql://user:password@127.0.0.1:${await listening(server)}/database`).catch(() => {})
  server.close()
  return settings
}
