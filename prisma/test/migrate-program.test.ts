import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { absentDatabase } from './databases.ts'

test('the program tells what it applied, from any working directory, and ends at once', async () => {
  const url = absentDatabase()
  const startedMs = performance.now()
  const first = await run(url)
  assert.match(first.stdout, /^Applied \d{14}_init\.\n$/)
  assert.equal(first.code, 0)
  // The engine's own timer would hold it for 10 s.
  assert.ok(performance.now() - startedMs < 9_000)
  assert.deepEqual(await run(url), { code: 0, stdout: 'The database is up to date.\n', stderr: '' })
})

test('what keeps the program from its database is told in one sentence, never with the password', async () => {
  const url = new URL(absentDatabase())
  const sentences: [string | undefined, RegExp][] = [
    [undefined, /^DATABASE_URL is not set; give it as postgresql:.*\.\n$/],
    ['somewhere', /^The database URL cannot be read; write it as postgresql:.*\.\n$/],
    [
      'mysql://user:not-the-password@host/name',
      /^The database URL starts with mysql:, but only PostgreSQL will do: .*\.\n$/,
    ],
    [
      `${url}?schema=other`,
      /^The database URL names the schema "other"; give Spillway a database of its own instead\.\n$/,
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

async function run(databaseUrl: string | undefined) {
  const program = fileURLToPath(new URL('../dist/migrate.js', import.meta.url))
  const { DATABASE_URL: _, ...env } = process.env
  const child = spawn(process.execPath, [program], {
    cwd: tmpdir(),
    env: databaseUrl === undefined ? env : { ...env, DATABASE_URL: databaseUrl },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [[code], stdout, stderr] = await Promise.all([once(child, 'close'), text(child.stdout), text(child.stderr)])
  return { code, stdout, stderr }
}
