import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'vitest'
import { openDatabases } from '../databases.ts'
import { runProgram } from '../run-program.ts'

const { absentDatabase } = await openDatabases()

test('the program tells what it applied, from any working directory, and ends at once', async () => {
  const url = absentDatabase()
  const first = await run(url)
  const entries = await readdir(join(import.meta.dirname, '../..', 'migrations'), { withFileTypes: true })
  const migrations = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
  assert.equal(first.stdout, `Applied ${migrations.toSorted().join(', ')}.\n`)
  assert.equal(first.code, 0)
  // The engine's own timer would hold it for 10 s.
  assert.ok(first.lingeredMs < 8_000, `${first.lingeredMs} ms`)
  const { lingeredMs: _, ...second } = await run(url)
  assert.deepEqual(second, { code: 0, stdout: 'The database is up to date.\n', stderr: '' })
})

test('an unreachable database is reported in one sentence, never with the password', async () => {
  const url = new URL(absentDatabase())
  const sentences: [string | undefined, RegExp][] = [
    [undefined, /^DATABASE_URL is not set; give it as postgresql:.*\n$/],
    ['somewhere', /^DATABASE_URL must be a URL such as postgresql:.*\n$/],
    ['mysql://user:not-the-password@host/name', /^DATABASE_URL must be a URL such as postgresql:.*\n$/],
    [
      `${url}?schema=other`,
      /^DATABASE_URL names a schema other than public; give Spillway a database of its own instead\n$/,
    ],
    [
      'postgresql://user:not-the-password@127.0.0.1:1/name',
      /^The database name at 127\.0\.0\.1:1 cannot be used: nothing answers there\.\n$/,
    ],
  ]
  for (const [databaseUrl, sentence] of sentences) {
    const { code, stdout, stderr } = await run(databaseUrl)
    assert.match(stderr, sentence)
    assert.doesNotMatch(stderr, /not-the-password/)
    assert.deepEqual({ code, stdout }, { code: 1, stdout: '' })
  }
})

const run = (databaseUrl?: string) =>
  runProgram('migrate', [], databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl })
