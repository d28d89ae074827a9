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

for (const [name, entry, ready] of [
  ['gateway', 'api/dist/main.js', 'gateway listening'],
  ['worker', 'worker/dist/main.cjs', 'worker ready'],
] as const) {
  test(`no inspector is opened in a ${name} by SIGUSR1`, async (t) => {
    const dir = await mkdtemp(join(tmpdir(), 'spillway-test-'))
    t.onTestFinished(() => rm(dir, { recursive: true }))
    await writeFile(join(dir, 'other.mjs'), "console.log('ready'); setInterval(() => undefined, 1_000)")
    const one = startProcess({ entry, nodeArgs, env: system.environment })
    const other = startProcess({ entry: join(dir, 'other.mjs'), nodeArgs })
    t.onTestFinished(async () => void (await Promise.all([one.close(), other.close()])))
    await Promise.all([one.waitForLog(({ msg }) => msg === ready), other.waitForLog(({ msg }) => msg === 'ready')])
    for (const { pid } of [one, other]) process.kill(pid, 'SIGUSR1')
    // In any other process it has been opened by now.
    await other.waitForLog(opened)
    assert.deepEqual(await one.stop(), { code: 0, signal: null })
    assert.ok(!one.logs.some(opened), one.output())
  })
}
