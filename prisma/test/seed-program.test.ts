import assert from 'node:assert/strict'
import { test } from 'node:test'
import { migratedUrl } from './databases.ts'
import { runProgram } from './run-program.ts'

test('a failure to seed is reported in one sentence', async () => {
  const urls = { DATABASE_URL: migratedUrl, GATEWAY_URL: 'http://127.0.0.1:1' }
  const sentences: [string[], NodeJS.ProcessEnv, RegExp][] = [
    [[], {}, /^Set DATABASE_URL and GATEWAY_URL, or use pnpm seed\.\n$/],
    [[], urls, /^No gateway answers at http:\/\/127\.0\.0\.1:1: start one, or set GATEWAY_URL\.\n$/],
    [['--users', 'many'], urls, /^--users takes a whole number from 1 to 10000000, not "many"\.\n$/],
    [['--user', '3'], urls, /^Unknown option '--user'[^\n]*\n$/],
  ]
  for (const [args, env, sentence] of sentences) {
    const { code, stdout, stderr } = await runProgram('seed-program', args, env)
    assert.match(stderr, sentence)
    assert.deepEqual({ code, stdout }, { code: 1, stdout: '' })
  }
})
