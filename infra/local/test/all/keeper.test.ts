import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { test } from 'vitest'
import { Keeper, stopOrder, ToolFailure } from '../../src/processes/keeper.ts'
import { startProcess } from '../../src/processes/node-process.ts'
import { isRunning } from '../../src/processes/process-table.ts'
import { repositoryDir } from '../../src/processes/repository.ts'
import { until } from '../../src/processes/until.ts'
import { scratchDir } from '../../src/rig/namespace.ts'

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
  const source = join(repositoryDir, 'infra/local/src')
  await writeFile(
    script,
    `import { Keeper } from ${JSON.stringify(pathToFileURL(join(source, 'processes/keeper.ts')).href)}
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
