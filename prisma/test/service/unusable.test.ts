// A database that cannot be used is one sentence: a pooler that the URL does not name, a file of
// TLS that is missing, a schema, tables of something else, missing rights.
import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { listening } from '@spillway/infra/processes/port'
import { afterAll, test } from 'vitest'
import { connectDatabase, databaseProblem, fillPool, LOGIN_PROBE } from '../../src/index.ts'
import { migrate } from '../../src/migrate.ts'
import { openDatabases, opened, rows } from '../databases.ts'

const { emptyDatabase, migratedUrl } = await openDatabases()

/** Refuses every connection as PgBouncer does for a setting that it does not know. */
const pooler = createServer((client) => {
  client.on('error', () => undefined)
  client.once('data', () => client.end(refusal('08P01', 'unsupported startup parameter: options')))
})
const url = `postgresql://user:hush@127.0.0.1:${await listening(pooler)}/shop`
afterAll(() => void pooler.close())

/** An ErrorResponse of PostgreSQL's protocol. */
function refusal(code: string, message: string): Buffer {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C${code}\0M${message}\0\0`)
  const head = Buffer.alloc(5)
  head.write('E')
  head.writeInt32BE(fields.length + 4, 1)
  return Buffer.concat([head, fields])
}

for (const [what, query, sentence] of [
  [
    'a pooler',
    '',
    /^a pooler answers there \(unsupported startup parameter: options\): add \?pgbouncer=true to the URL$/,
  ],
  [
    'a missing authority',
    '?sslmode=verify-full&sslrootcert=/missing/ca.pem',
    /^ENOENT: no such file or directory, open '\/missing\/ca\.pem'$/,
  ],
  ['a server without TLS', '?sslmode=verify-full', /^There was an error establishing an SSL connection$/],
] as const) {
  test(`${what} is one sentence, for queries and for the migration, and shows no password`, async () => {
    const database = connectDatabase({ url: url + query, poolSize: 1, connectionTimeoutMs: 60_000 })
    const error: unknown = await database.$queryRaw`SELECT 1`.then(
      () => undefined,
      (reason: unknown) => reason,
    )
    await database.$disconnect()
    assert.match(databaseProblem(error), sentence)
    await assert.rejects(migrate(url + query), ({ message }: Error) => {
      assert.match(message, /^The database shop at 127\.0\.0\.1:\d+ cannot be used: [^\n]+\.$/)
      assert.doesNotMatch(message, /hush/)
      return true
    })
  })
}

test('tables of something else, a missing column and a missing right are told when the pool is filled, and by the probe', async (t) => {
  const foreign = await emptyDatabase()
  const told = async (at = foreign) => {
    const filled: unknown = await fillPool(opened(t, at)).catch((error: unknown) => error)
    const probed: unknown = await opened(t, at)
      .$executeRawUnsafe(LOGIN_PROBE)
      .catch((error: unknown) => error)
    if (filled === undefined) return assert.equal(probed, 0)
    assert.equal(databaseProblem(filled), databaseProblem(probed))
    return databaseProblem(filled)
  }
  const notOurs = "its tables are not Spillway's, or were not migrated"
  assert.equal(await told(), notOurs)
  await rows(foreign, 'CREATE TABLE users (id serial, email text, password_hash text)')
  assert.equal(await told(), notOurs)
  await rows(foreign, 'DROP TABLE users')
  await migrate(foreign)
  assert.equal(await told(), undefined)
  await rows(foreign, 'ALTER TABLE sessions RENAME token_hash TO hash')
  assert.equal(await told(), notOurs)

  const [reader, role] = [new URL(migratedUrl), `reader_${foreign.slice(-12)}`]
  ;[reader.username, reader.password] = [role, 'hush']
  await rows(migratedUrl, `CREATE ROLE ${role} LOGIN PASSWORD 'hush'`)
  t.onTestFinished(async () => {
    for (const command of ['DROP OWNED BY', 'DROP ROLE']) await rows(migratedUrl, `${command} ${role}`)
  })
  await rows(migratedUrl, `GRANT SELECT ON users, sessions TO ${role}`)
  assert.match(String(await told(reader.href)), /^its user lacks a right there: /)
})

test('another schema, and a URL without a database, are refused in one sentence', () => {
  const bare = new URL(url)
  for (bare.pathname of ['', '/'])
    assert.throws(() => connectDatabase({ url: bare.href, poolSize: 1 }), {
      message: 'DATABASE_URL names no database: postgresql://user:password@host:5432/database',
    })
  for (const query of ['schema=shop', 'options=-c%20search_path%3Dshop'])
    assert.throws(() => connectDatabase({ url: `${url}?${query}`, poolSize: 1 }), /names a schema other than public/)
})
