// Processes end with what started them; a lock has one holder; processor time of processes.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { chmod, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { test } from 'vitest'
import { Keeper, stopOrder, ToolFailure } from '../../src/processes/keeper.ts'
import { startProcess } from '../../src/processes/node-process.ts'
import { isRunning } from '../../src/processes/process-table.ts'
import { processorMs, processorTime } from '../../src/processes/processor-time.ts'
import { repositoryDir } from '../../src/processes/repository.ts'
import { until } from '../../src/processes/until.ts'
import { scratchDir } from '../../src/rig/namespace.ts'
import { isHeld, takeLock } from '../../src/start/lock.ts'

const moduleOf = (name: string) => JSON.stringify(pathToFileURL(join(repositoryDir, 'infra/local/src', name)).href)

/** A shell that notes its name when asked to end, and its id when it can be asked. */
const noting = (name: string, file: string) => ({
  command: 'sh',
  args: ['-c', `trap 'echo ${name} >> ${file}; exit' TERM; echo up; while :; do sleep 0.05; done`],
})

test('closing ends the lower ranks first, and kills what does not listen', async (t) => {
  const file = join(await scratchDir(t), 'ended')
  const keeper = new Keeper(500)
  const deaf = { command: 'sh', args: ['-c', `trap '' TERM; echo up; while :; do sleep 0.05; done`] }
  const children = [
    keeper.spawn({ ...noting('service', file), stopOrder: stopOrder.service }),
    keeper.spawn({ ...noting('worker', file), stopOrder: stopOrder.worker }),
    keeper.spawn({ ...deaf, stopOrder: stopOrder.worker }),
    keeper.spawn({ ...noting('gateway', file), stopOrder: stopOrder.gateway }),
  ]
  await Promise.all(children.map((child) => new Promise((resolve) => child.stdout?.once('data', resolve))))
  await keeper.close()
  assert.equal(await readFile(file, 'utf8'), 'gateway\nworker\nservice\n')
  assert.ok(children.every(({ pid }) => pid !== undefined && !isRunning(pid)))
  assert.throws(() => keeper.spawn({ ...deaf, stopOrder: stopOrder.tool }), {
    message: 'Closing: nothing more is started.',
  })
})

test('a process that is killed takes along what it started', async (t) => {
  const dir = await scratchDir(t)
  const script = join(dir, 'launcher.mts')
  await writeFile(
    script,
    `import { Keeper } from ${moduleOf('processes/keeper.ts')}
     const child = new Keeper().spawn({ command: 'sleep', args: ['600'], stopOrder: 0 })
     console.log(JSON.stringify({ msg: 'started', childPid: child.pid }))`,
  )
  const launcher = startProcess({ entry: script, nodeArgs: ['--import', 'tsx'] })
  t.onTestFinished(() => launcher.close())
  const { childPid } = await launcher.waitForLog(({ msg }) => msg === 'started')
  assert.ok(typeof childPid === 'number' && isRunning(childPid))
  await launcher.stop('SIGKILL')
  await until(() => !isRunning(childPid), { what: 'the end of what the launcher started' })
})

test('a tool that fails, or does not exist, says so in one sentence with its last words', async (t) => {
  const keeper = new Keeper()
  t.onTestFinished(() => keeper.close())
  assert.equal(await keeper.run({ command: 'sh', args: ['-c', 'echo all is well'] }), 'all is well\n')
  await assert.rejects(
    keeper.run({ command: 'sh', args: ['-c', 'echo begun; echo no such thing >&2; exit 3'] }),
    (error) => error instanceof ToolFailure && error.message.endsWith('failed: begun / no such thing'),
  )
  await assert.rejects(
    keeper.run({ command: 'no-such-program', args: [] }),
    /^ToolFailure: no-such-program failed: .*ENOENT/,
  )
})

test('the death of the package manager that started it is noticed, the death of a shell in between is not', async (t) => {
  const dir = await scratchDir(t)
  const command = join(dir, 'command.mts')
  await writeFile(
    command,
    `import { onLauncherGone } from ${moduleOf('processes/command.ts')}
     onLauncherGone(() => process.exit(0))
     setTimeout(() => {}, 60_000)
     console.log(JSON.stringify({ msg: 'watching', childPid: process.pid, shellPid: process.ppid }))`,
  )
  // A program named pnpm that runs the command by a shell, as the real one does.
  const manager = join(dir, 'pnpm')
  await writeFile(
    manager,
    `const line = 'node --import ${import.meta.resolve('tsx')} ${command}; true'
     require('node:child_process').spawn('sh', ['-c', line], { stdio: 'inherit' })
     setInterval(() => {}, 1_000)`,
  )
  await chmod(manager, 0o755)
  const pnpm = startProcess({ entry: manager })
  t.onTestFinished(() => pnpm.close())
  const { childPid, shellPid } = await pnpm.waitForLog(({ msg }) => msg === 'watching')
  assert.ok(typeof childPid === 'number' && typeof shellPid === 'number')
  process.kill(shellPid, 'SIGKILL')
  await until(() => !isRunning(shellPid))
  // An absence cannot be awaited: this is twice as long as the event would take.
  await sleep(1_000)
  assert.ok(isRunning(childPid), 'it outlives the shell')
  await pnpm.stop('SIGKILL')
  await until(() => !isRunning(childPid), { what: 'the end of the command' })
})

test('a lock has one holder at a time, also in a folder that does not exist yet', async (t) => {
  const file = join(await scratchDir(t), 'new', 'build.lock')
  const keeper = new Keeper()
  t.onTestFinished(() => keeper.close())
  const lock = await takeLock(file, keeper, 0)
  assert.ok(lock)
  assert.equal(await takeLock(file, keeper, 100), undefined)
  assert.ok(isHeld(file))
  lock.close()
  assert.ok(!isHeld(file))
  assert.ok(await takeLock(file, keeper, 0))
})

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
