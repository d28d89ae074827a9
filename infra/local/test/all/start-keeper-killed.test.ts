import assert from 'node:assert/strict'
import { test } from 'vitest'
import { findProcess } from '../../src/processes/process-table.ts'
import { scratchDir } from '../../src/rig/namespace.ts'
import { allEnded, runStart, whenUp } from '../spillway.ts'

test('when the keeper is killed with the launcher, the next start ends what they left', async (t) => {
  const dir = await scratchDir(t)
  const killed = runStart(t, dir)
  const pids = await whenUp(killed)
  const keeper = pids.find((pid) => findProcess(pid)?.command.includes('keeper-process'))
  const members = pids.filter((pid) => findProcess(pid)?.command.includes('dist/main.'))
  assert.ok(keeper)
  for (const pid of [keeper, killed.pid, ...members]) process.kill(pid, 'SIGKILL')
  await killed.exited
  const next = runStart(t, dir)
  await whenUp(next)
  await allEnded(pids)
})
