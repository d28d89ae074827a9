// `pnpm load storm`: the storm of @spillway/client, from a clone.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { startProcess } from '@spillway/infra/processes/node-process'
import { listening } from '@spillway/infra/processes/port'
import { test } from 'vitest'

const load = (...args: string[]) =>
  startProcess({ entry: 'loadtests/src/main.ts', args, nodeArgs: ['--import', 'tsx'] })

test('pnpm load storms an application', async (t) => {
  const server = createServer((_request, response) => response.end())
  t.onTestFinished(() => void server.close())
  const target = ['--target', `http://127.0.0.1:${await listening(server)}`]
  const short = ['--users', '2', '--calm', '1', '--duration', '1']
  const args = [...target, '--login', 'POST /login', '--probe', 'GET /probe', '--p99', '5000', ...short]
  const stormed = load('storm', ...args)
  assert.deepEqual(await stormed.exited, { code: 0, signal: null }, stormed.output())
  assert.match(stormed.output(), /^2 users logged in to .* again and again for 1(\.\d)? s/s)
  assert.match(stormed.output(), /GET \/probe took/)
})

test('pnpm load storm has a help of its own, and its own exit codes', async () => {
  const help = load('storm', '--help')
  assert.equal((await help.exited).code, 0)
  assert.match(help.output(), /^pnpm load storm --target url --login 'POST \/login'/)
  const nowhere = load('storm', '--target', 'http://127.0.0.1:1', '--login', '/login')
  assert.equal((await nowhere.exited).code, 2)
  assert.match(nowhere.output(), /^Nothing listens at/)
  const mistaken = load('--help')
  await mistaken.exited
  assert.match(mistaken.output(), /^pnpm load storm --target url/m)
})
