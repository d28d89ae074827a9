// Calls without a deadline: in a script they wait, in a server they are refused when too late.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { test } from 'vitest'
import { besideProgram } from '../passwords.ts'

const run = promisify(execFile)
const CALLS = 60
const TIMEOUT_MS = 240_000

/** The last line that a script prints, in a process that its end ends. */
async function printedBy(script: string): Promise<string> {
  const args = ['--input-type=module', '-e', `${script}\nprocess.exit()`]
  const { stdout } = await run(process.execPath, args, { cwd: import.meta.dirname, timeout: TIMEOUT_MS })
  return stdout
}

/** The outcomes of `count` hashes at once, with their numbers. */
async function outcomes(before: string, options: object, cost: number): Promise<Record<string, number>> {
  const script = `
    const { createPasswordsWith } = await import('@spillway/client/application/create-passwords')
    const bcrypt = await import('@spillway/client/bcrypt')
    const { sharePasswords } = await import('@spillway/client/shared-passwords')
    const { createServer } = await import('node:net')
    const listen = (...at) => new Promise((resolve) => createServer().listen(...at, resolve))
    ${before}
    const log = { error: console.error, warn() {}, debug() {} }
    const engineIsChosen = new Promise((resolve) => (log.info = resolve))
    // The process beside does not keep this process alive.
    setInterval(() => undefined, 1_000)
    const passwords = createPasswordsWith(new URL(${JSON.stringify(besideProgram)}), { ...${JSON.stringify(options)}, log })
    sharePasswords(passwords)
    // Packages hash until the engine has measured itself; its first hash tells what one takes.
    await engineIsChosen
    await passwords.hash('x', { algorithm: 'bcrypt', cost: ${cost} }, { deadline: Infinity })
    const calls = Array.from({ length: ${CALLS} }, () => bcrypt.hash('x', ${cost}))
    const counts = {}
    for (const { status, reason } of await Promise.allSettled(calls)) {
      const outcome = status === 'fulfilled' ? 'made' : reason.code
      counts[outcome] = (counts[outcome] ?? 0) + 1
    }
    console.log(JSON.stringify(counts))`
  return JSON.parse(await printedBy(script))
}

test('in a script all calls are answered, however many there are at once', async () => {
  assert.deepEqual(await outcomes('', { concurrency: 1, maxOutstanding: 8 }, 5), { made: CALLS })
})

test('in a process that listens, calls that would come too late are refused at once', async () => {
  const { busy = 0 } = await outcomes(`await listen(0, '127.0.0.1')`, { concurrency: 1, maxOutstanding: 8 }, 5)
  assert.equal(busy, CALLS - 8)
})
