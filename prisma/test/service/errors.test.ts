import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { startProxy } from '@spillway/infra/harness/tcp-proxy'
import { until } from '@spillway/infra/processes/until'
import { test } from 'vitest'
import { connectForScripts } from '../../src/connection.ts'
import {
  type Database,
  databaseProblem,
  isDatabaseUnavailable,
  mayHaveHappened,
  Prisma,
  rawQuery,
} from '../../src/index.ts'
import { openDatabases, opened } from '../databases.ts'

const { migratedUrl: url } = await openDatabases()

test('mistakes of our own do not make the database unavailable', async (t) => {
  const database = opened(t, url)
  const user = { id: randomUUID(), email: 'a@example.test', passwordHash: 'x' }
  const mistakes = [
    failure(database.$queryRaw`SELECT nonsense`),
    failure(rawQuery(database, Prisma.sql`SELECT nonsense`)),
    failure(database.$executeRaw`
      INSERT INTO sessions VALUES (gen_random_uuid(), gen_random_uuid(), now(), now(), now(), NULL, NULL, NULL, '', '')`),
    failure(database.user.update({ where: { id: randomUUID() }, data: { passwordHash: 'x' } })),
    failure(database.user.findUnique({ where: { id: 'no uuid' } })),
    failure(database.user.createMany({ data: [user, user] })),
    new TypeError('x is not a function'),
    null,
  ]
  for (const error of await Promise.all(mistakes)) {
    assert.equal(isDatabaseUnavailable(error), false, String(error))
  }
})

test('a server that cannot be reached, or refuses us, makes the database unavailable', async (t) => {
  const wrong = (change: (url: URL) => void) => {
    const changed = new URL(url)
    change(changed)
    return changed.href
  }
  const silent = await startProxy(url)
  t.onTestFinished(() => void silent.close())
  silent.freeze()
  const urls = [
    wrong((url) => (url.port = '1')),
    wrong((url) => (url.hostname = 'nowhere.invalid')),
    wrong((url) => (url.password = 'wrong')),
    wrong((url) => url.searchParams.set('sslmode', 'verify-full')),
    silent.url,
  ]
  for (const unreachable of urls) {
    const database = opened(t, unreachable, { connectionTimeoutMs: 300 })
    for (const attempt of [
      () => database.user.count(),
      () => rawQuery(database, Prisma.sql`SELECT 1`),
      () => database.$transaction((inner) => inner.user.count()),
    ]) {
      const error = await failure(attempt())
      assert.deepEqual([isDatabaseUnavailable(error), mayHaveHappened(error)], [true, false], String(error))
    }
  }
})

test('a server that asks for a password which the URL lacks is left at once', async (t) => {
  const proxy = await startProxy(url)
  t.onTestFinished(() => proxy.close())
  const bare = new URL(proxy.url)
  bare.password = ''
  for (const attempt of [() => connectForScripts(bare.href), () => opened(t, bare.href).user.count()])
    assert.match(databaseProblem(await failure(attempt())), /^it asks for a password/)
  // The server itself would wait for 60 s.
  await until(() => proxy.addresses().length === 0, { timeoutMs: 10_000 })
})

test('a server that became read-only, as after a failover, makes the database unavailable for what writes', async (t) => {
  const readOnly = new URL(url)
  readOnly.searchParams.set('options', '-c default_transaction_read_only=on')
  const database = opened(t, readOnly.href)
  assert.equal(typeof (await database.user.count()), 'number')
  const user = { id: randomUUID(), email: 'c@example.test', passwordHash: 'x' }
  for (const attempt of [
    () => database.user.create({ data: user }),
    () => database.$transaction((inner) => inner.user.create({ data: user })),
    () => database.$executeRaw`DELETE FROM sessions`,
    () => rawQuery(database, Prisma.sql`DELETE FROM sessions`),
  ]) {
    const error = await failure(attempt())
    assert.match(String(error), /read-only/)
    assert.equal(isDatabaseUnavailable(error), true, String(error))
  }
})

test('a statement that another transaction rolled back may succeed later', async (t) => {
  const database = opened(t, url)
  for (const state of ['40001', '40P01']) {
    const raised = `DO $$ BEGIN RAISE EXCEPTION 'rolled back' USING ERRCODE = '${state}'; END $$`
    for (const attempt of [
      () => database.$transaction((inner) => inner.$executeRawUnsafe(raised)),
      () => rawQuery(database, new Prisma.Sql([raised], [])),
    ])
      assert.equal(isDatabaseUnavailable(await failure(attempt())), true, state)
  }
})

test('a statement that takes too long is ended by the server', async (t) => {
  const database = opened(t, url, { statementTimeoutMs: 100 })
  const slow = Prisma.sql`SELECT pg_sleep(30)::text`
  for (const attempt of [() => database.$queryRaw(slow), () => rawQuery(database, slow)]) {
    // On a busy machine the client may give up first.
    const error = await until(async () => {
      const error = await failure(attempt())
      return /statement timeout/.test(String(error)) && error
    })
    assert.deepEqual([isDatabaseUnavailable(error), mayHaveHappened(error)], [true, false])
  }
})

test('a connection that goes silent in mid-query is given up', async (t) => {
  const proxy = await startProxy(url)
  t.onTestFinished(() => proxy.close())
  for (const ask of [
    (database: Database) => database.user.count(),
    (database: Database) => rawQuery(database, Prisma.sql`SELECT 1`),
  ]) {
    const database = opened(t, proxy.url, { statementTimeoutMs: 1_000 })
    proxy.restore()
    await until(() => database.$queryRaw`SELECT 1`)
    proxy.freeze()
    const error = await failure(ask(database))
    assert.match(String(error), /Query read timeout/)
    assert.deepEqual([isDatabaseUnavailable(error), mayHaveHappened(error)], [true, true])
  }
})

test('having no connection free in time makes the database unavailable', async (t) => {
  const database = opened(t, url, { poolSize: 1, connectionTimeoutMs: 500 })
  // On a busy machine the first connection may take longer.
  await until(() => database.$queryRaw`SELECT 1`)
  const whileBusy = async () => {
    const errors = await Promise.all([
      failure(database.user.count()),
      failure(rawQuery(database, Prisma.sql`SELECT 1`)),
      failure(database.$transaction((inner) => inner.user.count())),
    ])
    for (const error of errors) assert.equal(isDatabaseUnavailable(error), true, String(error))
  }
  await database.$transaction(whileBusy, { timeout: 60_000 })
})

const failure = (attempt: Promise<unknown>): Promise<unknown> =>
  attempt.then(
    () => assert.fail('it should have failed'),
    (error: unknown) => error,
  )
