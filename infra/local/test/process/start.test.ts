// `pnpm start`, from the first start to the last: each test goes on where the one before ended.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { scratchDir } from '@spillway/infra/harness/namespace'
import type { NodeProcess } from '@spillway/infra/processes/node-process'
import { findProcess } from '@spillway/infra/processes/process-table'
import { repositoryDir } from '@spillway/infra/processes/repository'
import { onPath } from '@spillway/infra/processes/run'
import { until } from '@spillway/infra/processes/until'
import { afterAll, test } from 'vitest'
import { allEnded, curls, runStart, startEnvironment, status, whenUp } from '../spillway.ts'

const dir = await scratchDir({ onTestFinished: afterAll })
const closes: (() => Promise<void>)[] = []
afterAll(async () => {
  for (const close of closes) await close()
})

/** Of the run that is on. */
let spillway: NodeProcess
let pids: number[]

async function start(...args: string[]): Promise<void> {
  spillway = runStart({ onTestFinished: (close) => closes.push(close) }, dir, args)
  pids = await whenUp(spillway)
}

test('the printed commands work', async () => {
  await start()
  const [register, login] = curls(spillway)
  assert.equal(await status(login), 401)
  assert.equal(await status(register), 201)
  assert.equal(await status(register), 409)
  assert.equal(await status(login), 200)
  assert.match(spillway.output(), /gateway .*\n.*worker /)
  assert.match(spillway.output(), /\/queues\n.*\/audit\n.*\/runbooks\n.*ops API .*\/docs\n/)
  assert.equal(statSync(join(dir, 'secrets.json')).mode & 0o077, 0)
  if (onPath(['curl']) === undefined) return
  const show = () =>
    execFileSync('sh', ['-c', String(login)], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  // A busy machine may cause a ticket.
  await until(() => show().startsWith('HTTP/1.1 200 OK'))
})

test('a second one on the same data is refused', async (t) => {
  const second = runStart(t, dir)
  assert.equal((await second.exited).code, 1)
  assert.match(second.output(), /^Spillway already runs on .*: stop it first, or set SPILLWAY_DIR to another folder\.$/)
})

test('a worker that dies is reported with its last words and started again', async () => {
  const worker = pids.find((pid) => findProcess(pid)?.command.includes('worker/dist/main.cjs'))
  assert.ok(worker)
  process.kill(worker, 'SIGKILL')
  const again = /^worker ended \(SIGKILL\) and is started again\. Its log ends with: .*job answered/
  await spillway.waitForLog(({ msg }) => again.test(msg ?? ''))
  const log = join(dir, 'logs', 'worker.log')
  await until(() => readFileSync(log, 'utf8').match(/"worker ready"/g)?.length === 2)
  assert.equal(await status(curls(spillway)[1]), 200)
})

test('a launcher that is killed leaves no process, and the next start finds the data', async () => {
  const left = pids
  assert.ok(left.length >= 5, 'keeper, PostgreSQL, Redis, gateway, worker')
  await spillway.stop('SIGKILL')
  // At once: it has to wait for what is still ending.
  await start()
  await allEnded(left)
  assert.equal(await status(curls(spillway)[1]), 200)
})

test('SIGINT ends all that was started, with exit code 0', async () => {
  assert.deepEqual(await spillway.stop('SIGINT'), { code: 0, signal: null })
  await allEnded(pids)
})

test('a terminal that closes ends all in order: what is said to nobody is no error', async (t) => {
  const args = ['--import', 'tsx', 'infra/local/src/start/main.ts']
  const { PATH, HOME } = process.env
  const child = spawn(process.execPath, args, { cwd: repositoryDir, env: { PATH, HOME, ...startEnvironment(dir) } })
  t.onTestFinished(() => void child.kill('SIGKILL'))
  let said = ''
  child.stdout.on('data', (bytes) => (said += bytes))
  await until(() => said.includes('Spillway is up'))
  child.stdout.destroy()
  child.stderr.destroy()
  child.kill('SIGHUP')
  assert.deepEqual(await once(child, 'exit'), [0, null])
})

test('--fresh deletes the data', async () => {
  await start('--fresh')
  assert.equal(await status(curls(spillway)[1]), 401)
  assert.deepEqual(await spillway.stop('SIGTERM'), { code: 0, signal: null })
})
