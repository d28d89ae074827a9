// SIGUSR1, by which Node would open its inspector to anyone who reaches the port.
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startProcess } from '@spillway/infra/processes/node-process'
import { test } from 'vitest'
import { openSystem } from '../system.ts'

const system = await openSystem()
const nodeArgs = ['--inspect-port=0']
const opened = ({ msg = '' }: { msg?: string }) => msg.startsWith('Debugger listening')

test('no inspector is opened in a gateway or a worker by SIGUSR1', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'spillway-test-'))
  t.onTestFinished(() => rm(dir, { recursive: true }))
  await writeFile(join(dir, 'other.mjs'), "console.log('ready'); setInterval(() => undefined, 1_000)")
  const started = async (entry: string, ready: string, env = {}) => {
    const process = startProcess({ entry, nodeArgs, env })
    t.onTestFinished(() => process.close())
    await process.waitForLog(({ msg }) => msg === ready)
    return process
  }
  const [other, ...ours] = await Promise.all([
    started(join(dir, 'other.mjs'), 'ready'),
    started('api/dist/main.js', 'gateway listening', system.environment),
    started('worker/dist/main.cjs', 'worker ready', system.environment),
  ])
  for (const { pid } of [...ours, other]) process.kill(pid, 'SIGUSR1')
  // In any other process it has been opened by now.
  await other.waitForLog(opened)
  for (const each of ours) {
    assert.deepEqual(await each.stop(), { code: 0, signal: null })
    assert.ok(!each.logs.some(opened), each.output())
  }
})
