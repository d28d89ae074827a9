// `pnpm seed`, where it cannot.
import assert from 'node:assert/strict'
import { createNamespace, scratchDir } from '@spillway/infra/harness/namespace'
import { startProcess } from '@spillway/infra/processes/node-process'
import { test } from 'vitest'

test('a failure to seed is reported in one sentence', async (t) => {
  const { databaseUrl, close } = await createNamespace()
  t.onTestFinished(close)
  const nothingRuns = await scratchDir(t)
  const urls = { DATABASE_URL: databaseUrl, GATEWAY_URL: 'http://127.0.0.1:1' }
  const sentences: [string[], NodeJS.ProcessEnv, RegExp][] = [
    [[], {}, /^Nothing runs here: run "pnpm start" first, or set both DATABASE_URL and GATEWAY_URL\.$/],
    [[], urls, /^No gateway answers at http:\/\/127\.0\.0\.1:1: start one, or set GATEWAY_URL\.$/],
  ]
  for (const [args, env, sentence] of sentences) {
    const seed = startProcess({
      entry: 'infra/accounts/src/seed.ts',
      args,
      nodeArgs: ['--import', 'tsx'],
      env: { SPILLWAY_DIR: nothingRuns, ...env },
    })
    assert.deepEqual(await seed.exited, { code: 1, signal: null })
    assert.match(seed.output(), sentence)
  }
})
