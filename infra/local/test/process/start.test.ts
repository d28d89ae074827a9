import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'vitest'
import { onPath } from '../../src/services/on-path.ts'
import { scratchDir } from '../../src/testing/scratch-dir.ts'
import { allEnded, curls, runStart, status, whenUp } from '../spillway.ts'

test('the printed commands work, also after a restart, until the data is deleted', async (t) => {
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

  if (onPath(['curl']) !== undefined) {
    const shown = execFileSync('sh', ['-c', String(login)], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
    assert.match(shown, /^HTTP\/1.1 200 OK/)
  }

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
