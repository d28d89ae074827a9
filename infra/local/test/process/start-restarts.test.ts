import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'vitest'
import { findProcess } from '../../src/processes/process-table.ts'
import { until } from '../../src/processes/until.ts'
import { scratchDir } from '../../src/testing/scratch-dir.ts'
import { curls, runStart, status, whenUp } from '../spillway.ts'

test('a worker that dies is reported with its last words and started again', async (t) => {
  const dir = await scratchDir(t)
  const spillway = runStart(t, dir)
  const pids = await whenUp(spillway)
  const [register, login] = curls(spillway)
  assert.equal(await status(register), 201)
  const worker = pids.find((pid) => findProcess(pid)?.command.includes('worker/dist/main.cjs'))
  assert.ok(worker)
  process.kill(worker, 'SIGKILL')
  const again = /^worker 1 ended \(SIGKILL\) and is started again\. .*worker ready/
  await spillway.waitForLog(({ msg }) => again.test(msg ?? ''))
  await until(async () => (await status(login)) === 200, { what: 'a login through the new worker' })
  await until(() => readFileSync(join(dir, 'logs/worker-1.log'), 'utf8').match(/"worker ready"/g)?.length === 2)
})
