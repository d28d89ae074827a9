import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { scratchDir } from '@spillway/infra/harness/namespace'
import { listening } from '@spillway/infra/processes/port'
import { test } from 'vitest'
import { runStart } from '../spillway.ts'

test('a port that is taken is named, with the way out', async (t) => {
  const server = createServer()
  const port = await listening(server)
  t.onTestFinished(() => void server.close())
  const spillway = runStart(t, await scratchDir(t), [], { PORT: String(port) })
  assert.equal((await spillway.exited).code, 1)
  assert.equal(spillway.output(), `Port ${port} is taken: stop what listens there, or set PORT to another.`)
})

test('a wrong option or variable is one sentence and exit code 1', async (t) => {
  const dir = await scratchDir(t)
  const wrong: [string[], NodeJS.ProcessEnv, RegExp][] = [
    [['--gateways', '2'], {}, /--gateways/],
    [[], { PORT: 'http' }, /^PORT must be a port from 0 to 65535, not "http"\.$/],
    [
      [],
      { REDIS_URL: 'redis://127.0.0.1:1' },
      /^REDIS_URL is set, but nothing answers there \(.*\): .* unset REDIS_URL\.$/,
    ],
  ]
  await Promise.all(
    wrong.map(async ([args, env, sentence]) => {
      const spillway = runStart(t, await scratchDir(t), args, env)
      assert.equal((await spillway.exited).code, 1)
      assert.match(spillway.output(), sentence)
    }),
  )
  const help = runStart(t, dir, ['--help'])
  assert.equal((await help.exited).code, 0)
  assert.match(help.output(), /--fresh/)
})
