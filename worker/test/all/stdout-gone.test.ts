// Standard output that takes nothing, its reader gone or its disk full: the process goes on.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, openSync, readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type TestContext, test } from 'vitest'
import { clientFor, resultOf, submit } from '../parts.ts'
import { startedWorkerProcess } from '../worker-process.ts'

const log = fileURLToPath(new URL('../../common/dist/log.js', import.meta.url))
const endMs = 30_000

/** Runs a program with a `log` and this standard output; gives lines of its standard error */
function runLogger(t: TestContext, program: string, stdout: 'pipe' | number): ChildProcess {
  const imports = `import { createLogger } from ${JSON.stringify(log)}; import { writeSync } from 'node:fs';`
  const begin = "const log = createLogger({ service: 'test', level: 'info' });"
  const child = spawn(process.execPath, ['--input-type=module', '--eval', imports + begin + program], {
    stdio: ['pipe', stdout, 'pipe'],
  })
  t.onTestFinished(() => void child.kill('SIGKILL'))
  return child
}

/** Its exit code and what it said on standard error, or a failure when it does not end. */
async function ended(child: ChildProcess): Promise<{ code: number; said: string }> {
  let said = ''
  child.stderr?.on('data', (text) => (said += text))
  const [code] = await once(child, 'close', { signal: AbortSignal.timeout(endMs) })
  return { code, said }
}

test.concurrent('a reader that has gone before the last lines keeps no process from its exit', async (t) => {
  const child = runLogger(t, "process.stdin.once('data', () => { log.info('last'); process.exit(3) })", 'pipe')
  child.stdout?.destroy()
  child.stdin?.write('go')
  assert.deepEqual(await ended(child), { code: 3, said: '' })
})

test.concurrent('a reader that goes while lines are written keeps no process from going on, nor from its exit', async (t) => {
  const program = `
    const timer = setInterval(() => log.info('x'.repeat(10_000)), 1)
    process.stdin.once('data', () => { log.info('last'); process.exit(3) })`
  const child = runLogger(t, program, 'pipe')
  assert.ok(child.stdout)
  await once(child.stdout, 'data')
  child.stdout.destroy()
  child.stdin?.write('go')
  assert.deepEqual(await ended(child), { code: 3, said: '' })
})

test.concurrent('of what a reader leaves unread a bounded part is kept, and the number of lines that were dropped', async (t) => {
  const program = `
    const line = 'x'.repeat(100_000)
    for (let i = 0; i < 1_000; i += 1) log.info(line)
    writeSync(2, String(process.memoryUsage().rss))`
  const child = runLogger(t, program, 'pipe')
  assert.ok(child.stdout && child.stderr)
  child.stdout.pause()
  const [rss] = await once(child.stderr, 'data')
  assert.ok(Number(rss) < 120 * 1_024 * 1_024, `${rss} bytes`)
  const lines = (await text(child.stdout)).trimEnd().split('\n')
  const [first, last] = [lines[0] ?? '', lines.at(-1) ?? ''].map((line) => JSON.parse(line))
  assert.equal(first.msg.length, 100_000)
  assert.equal(last.msg, 'log lines dropped: nobody read them in time')
  assert.equal(lines.length - 1 + last.count, 1_000)
})

test.concurrent('a full disk keeps no process from going on, nor from its exit', async (t) => {
  if (!existsSync('/dev/full')) t.skip('there is no /dev/full')
  const program = `
    log.info('dropped')
    process.stdin.once('data', () => { log.info('last'); process.exit(3) })
    log.flush(() => writeSync(2, 'on'))`
  const child = runLogger(t, program, openSync('/dev/full', 'w'))
  assert.ok(child.stderr)
  await once(child.stderr, 'data')
  child.stdin?.write('go')
  assert.deepEqual(await ended(child), { code: 3, said: '' })
})

test.concurrent('a worker whose log nobody reads any more works on, tries to write no more often than before, and ends at a SIGTERM with exit code 0', async (t) => {
  const { space, client } = await clientFor(t)
  const worker = await startedWorkerProcess(space)
  worker.closeStdout()
  assert.ok(await resultOf(await submit(client, 'hash', { password: 'x' })))
  if (process.platform === 'linux') {
    const before = writesOf(worker.pid)
    await sleep(1_000)
    const writes = writesOf(worker.pid) - before
    // An idle worker asks Redis ten times a second; a repeated write makes a hundred thousand.
    assert.ok(writes < 1_000, `${writes} writes in a second`)
  }
  assert.deepEqual(await worker.stop(), { code: 0, signal: null })
})

/** How often it has asked the system to write, in vain or not. */
function writesOf(pid: number): number {
  return Number(/^syscw: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1])
}
