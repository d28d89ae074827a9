// Processor time of other processes, as the kernel counts them.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { test } from 'vitest'
import { startProcess } from '../../src/processes/node-process.ts'
import { processorMs, processorTime } from '../../src/processes/processor-time.ts'
import { until } from '../../src/processes/until.ts'

const WORK_MS = 300
const program = `
  const { spawn } = require('node:child_process')
  const work = 'while (process.cpuUsage().user < ${WORK_MS * 1_000}); console.log("done"); process.stdin.resume()'
  spawn(process.execPath, ['-e', work], { stdio: ['pipe', 'inherit', 'inherit'] })`

test.skipIf(existsSync('/proc/self/stat') ? false : 'this system has no /proc')(
  'processes are counted with their living descendants, each once',
  async (t) => {
    const parent = startProcess({ entry: '-e', args: [program] })
    t.onTestFinished(() => parent.close())
    await parent.waitForLog(({ msg }) => msg === 'done')
    const alone = processorTime(parent.pid) ?? 0
    const together = processorMs([parent.pid])
    assert.ok(together >= alone + WORK_MS, `${together} ms, ${alone} of the parent's own`)
    assert.ok(processorMs([parent.pid, parent.pid]) < together + WORK_MS)
    await parent.stop('SIGKILL')
    await until(() => processorTime(parent.pid) === undefined)
  },
)
