// Passwords hashed in the process of an application, as its tests want it.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { createPasswordsWith } from '@spillway/client/application/create-passwords'
import * as bcrypt from '@spillway/client/bcrypt'
import { readEnvironment, sharePasswords } from '@spillway/client/shared-passwords'
import original from 'bcrypt'
import { type TestContext, test } from 'vitest'
import { besideProgram, noProgram, rejectsWith, silent } from '../application.ts'

const cheap = { algorithm: 'argon2id', memoryKib: 64, time: 1 } as const
function inPlace(t: TestContext, options = {}, program = besideProgram) {
  const own = { inProcess: true, policy: cheap, waitMs: 60_000, log: silent }
  const passwords = createPasswordsWith(program, { ...own, ...options })
  t.onTestFinished(() => passwords.close())
  return passwords
}

async function programsBeside(): Promise<string[]> {
  const children = await readFile(`/proc/${process.pid}/task/${process.pid}/children`, 'utf8')
  const pids = children.split(' ').filter(Boolean)
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')))
  return lines.filter((line) => line.includes('beside.cjs'))
}

test('verdicts and hashes are those of the process beside, and there is none', async (t) => {
  const passwords = inPlace(t)
  const stored = await passwords.hash('correct horse')
  assert.equal(await passwords.verify('correct horse', stored), true)
  assert.equal(await passwords.verify('correct hors', stored), false)
  assert.equal(await passwords.verify('correct horse', null), false)
  assert.equal(await passwords.verify('correct horse', 'no hash'), false)
  sharePasswords(passwords)
  const hash = await bcrypt.hash('correct horse', 4)
  assert.equal(await original.compare('correct horse', hash), true)
  assert.equal(passwords.capacity().by, 'process')
  assert.deepEqual(await programsBeside(), [])
})

test('what waits when it is closed is rejected, and a later call as well', async (t) => {
  const passwords = inPlace(t, { concurrency: 1 })
  const calls = Array.from({ length: 20 }, () => passwords.hash('x', { algorithm: 'bcrypt', cost: 8 }))
  await calls[0]
  await passwords.close()
  const outcomes = await Promise.allSettled(calls)
  assert.ok(outcomes.some(({ status }) => status === 'rejected'))
  await rejectsWith('closed', passwords.hash('x'))
})

test('code that does not load is told by its code', async (t) => {
  await rejectsWith('no_worker', inPlace(t, {}, noProgram).hash('x'))
})

test('SPILLWAY_IN_PROCESS says it to the replacements', () => {
  assert.equal(readEnvironment({ SPILLWAY_IN_PROCESS: 'true' }).inProcess, true)
  assert.equal(readEnvironment({ SPILLWAY_IN_PROCESS: 'false' }).inProcess, false)
  assert.equal(readEnvironment({}).inProcess, undefined)
  assert.throws(() => readEnvironment({ SPILLWAY_IN_PROCESS: 'yes' }), /SPILLWAY_IN_PROCESS must be true or false/)
})
