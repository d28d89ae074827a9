// The migration as users run it: compiled, from a directory of its own.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { scratchDir } from '@spillway/infra/harness/namespace'
import { test } from 'vitest'
import { openDatabases } from '../databases.ts'

const { emptyDatabase } = await openDatabases()
const program = join(import.meta.dirname, '../../dist/migrate.js')

/** Runs it to its end; also how long the process went on after its last word, in milliseconds. */
async function run(variables: NodeJS.ProcessEnv) {
  const { PATH } = process.env
  const options = { cwd: tmpdir(), env: { PATH, ...variables } }
  const child = spawn(process.execPath, [program], { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
  let spokeAt = performance.now()
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', () => {
      spokeAt = performance.now()
    })
  const [[code], stdout, stderr] = await Promise.all([once(child, 'close'), text(child.stdout), text(child.stderr)])
  return { ended: { code, stdout, stderr }, lingeredMs: performance.now() - spokeAt }
}

test('the program tells what it applied, from any working directory, and ends at once; the URL may be in a file', async (t) => {
  const [url, file] = [await emptyDatabase(), join(await scratchDir(t), 'url')]
  await writeFile(file, `${url}\n`)
  const { ended, lingeredMs } = await run({ DATABASE_URL_FILE: file })
  const entries = await readdir(join(import.meta.dirname, '../..', 'migrations'), { withFileTypes: true })
  const migrations = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
  assert.deepEqual(ended, { code: 0, stdout: `Applied ${migrations.toSorted().join(', ')}.\n`, stderr: '' })
  // The engine's own timer would hold it for 10 s.
  assert.ok(lingeredMs < 8_000, `${lingeredMs} ms`)
  const again = await run({ DATABASE_URL: url })
  assert.deepEqual(again.ended, { code: 0, stdout: 'The database is up to date.\n', stderr: '' })
})

test('an unreachable database is reported in one sentence, never with the password', async () => {
  const ofUrl = (DATABASE_URL: string) => ({ DATABASE_URL })
  const sentences: [NodeJS.ProcessEnv, RegExp][] = [
    [{}, /^DATABASE_URL is not set; give it as postgresql:.*\n$/],
    [ofUrl('mysql://user:not-the-password@host/name'), /^DATABASE_URL must be a URL such as postgresql:.*\n$/],
    [
      ofUrl('postgresql://user:not-the-password@127.0.0.1:1/name'),
      /^The database name at 127\.0\.0\.1:1 cannot be used: nothing answers there\.\n$/,
    ],
  ]
  for (const [env, sentence] of sentences) {
    const { code, stdout, stderr } = (await run(env)).ended
    assert.match(stderr, sentence)
    assert.doesNotMatch(stderr, /not-the-password/)
    assert.deepEqual({ code, stdout }, { code: 1, stdout: '' })
  }
})
