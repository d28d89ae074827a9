import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { onPath } from '../src/on-path.ts'
import { findProcess } from '../src/process-table.ts'
import { until } from '../src/until.ts'
import { scratchDir } from './scratch.ts'
import { allEnded, curls, runStart, status, whenUp } from './spillway.ts'

test('what is printed works, and goes on to work after a restart, until the data is deleted', async (t) => {
  const dir = await scratchDir(t)
  const first = runStart(t, dir, ['--gateways', '2', '--workers', '2'])
  const pids = await whenUp(first)
  const [register, login] = curls(first)
  assert.equal(await status(login), 401)
  assert.equal(await status(register), 201)
  assert.equal(await status(register), 409)
  assert.equal(await status(login), 200)
  assert.match(first.output(), /gateway 2 .*\n.*worker 1 .*\n.*worker 2 /)
  assert.equal(statSync(join(dir, 'secrets.json')).mode & 0o077, 0)

  await t.test('with curl itself', { skip: onPath(['curl']) ? false : 'there is no curl' }, () => {
    const shown = execFileSync('sh', ['-c', String(login)], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
    assert.match(shown, /^HTTP\/1.1 200 OK/)
  })

  const second = runStart(t, dir)
  assert.equal((await second.exited).code, 1)
  assert.match(second.output(), /^Spillway already runs on .*: stop it first, or set SPILLWAY_DIR to another folder\.$/)

  assert.deepEqual(await first.stop('SIGINT'), { code: 0, signal: null })
  await allEnded(pids)

  const again = runStart(t, dir)
  await whenUp(again)
  assert.equal(await status(curls(again)[1]), 200)
  await again.stop('SIGTERM')

  const fresh = runStart(t, dir, ['--fresh'])
  await whenUp(fresh)
  assert.equal(await status(curls(fresh)[1]), 401)
})

test('a worker that dies is reported with its last words and started again', async (t) => {
  const dir = await scratchDir(t)
  const spillway = runStart(t, dir)
  const pids = await whenUp(spillway)
  const [register, login] = curls(spillway)
  assert.equal(await status(register), 201)
  const worker = pids.find((pid) => findProcess(pid)?.command.includes('worker/dist/main.cjs'))
  assert.ok(worker)
  process.kill(worker, 'SIGKILL')
  await spillway.waitForLog(({ msg }) =>
    /^worker 1 ended \(SIGKILL\) and is started again\. .*worker ready/.test(msg ?? ''),
  )
  await until(async () => (await status(login)) === 200, { what: 'a login through the new worker' })
  assert.equal(readFileSync(join(dir, 'logs/worker-1.log'), 'utf8').match(/"worker ready"/g)?.length, 2)
})

test('a port that is taken is named, with the way out', async (t) => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const address = server.address()
  assert.ok(typeof address === 'object' && address !== null)
  const spillway = runStart(t, await scratchDir(t), [], { PORT: String(address.port) })
  assert.equal((await spillway.exited).code, 1)
  assert.equal(
    spillway.output(),
    `Port ${address.port} is taken: stop what listens there, or set PORT to the first of some free ports.`,
  )
})

test('a wrong option or variable is one sentence and exit code 1', async (t) => {
  const dir = await scratchDir(t)
  const wrong: [string[], NodeJS.ProcessEnv, RegExp][] = [
    [['--gateways', 'many'], {}, /^--gateways takes a whole number from 1 to 64, not "many"\.$/],
    [['--gateway', '2'], {}, /^Unknown option '--gateway': see "pnpm start --help"\.$/],
    [['2'], {}, /^Unexpected argument '2'.*: see "pnpm start --help"\.$/],
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
  assert.match(help.output(), /--workers N/)
})
