import assert from 'node:assert/strict'
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { test } from 'vitest'
import { startProcess } from '../../src/processes/node-process.ts'
import { isRunning } from '../../src/processes/process-table.ts'
import { repositoryDir } from '../../src/processes/repository.ts'
import { until } from '../../src/processes/until.ts'
import { scratchDir } from '../../src/rig/namespace.ts'

test('the death of the package manager that started it is noticed, the death of a shell in between is not', async (t) => {
  const dir = await scratchDir(t)
  const command = join(dir, 'command.mts')
  const module = pathToFileURL(join(repositoryDir, 'infra/local/src/processes/command.ts')).href
  await writeFile(
    command,
    `import { onLauncherGone } from ${JSON.stringify(module)}
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
