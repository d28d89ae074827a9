// Whoever started this process by `npx --yes pnpm start` may kill npx or pnpm, of which this is only a child or grandchild.
import { basename } from 'node:path'
import { findProcess, isRunning } from './process-table.ts'

const pollMs = 500

/**
 * Calls back once when a package manager that this process was started by has ended, however that happened. Shells
 * between them are not waited for: they may start something in the background and leave.
 */
export function onLauncherGone(callback: () => void): { close(): void } {
  const launchers = findLaunchers()
  const timer = setInterval(() => {
    if (launchers.every(isRunning)) return
    clearInterval(timer)
    callback()
  }, pollMs)
  timer.unref()
  return { close: () => clearInterval(timer) }
}

/** The processes of npx, npm and pnpm above this one, the nearest first. */
function findLaunchers(): number[] {
  const found: number[] = []
  let pid = process.ppid
  for (let facts = findProcess(pid); facts; pid = facts.parentPid, facts = findProcess(pid)) {
    if (isPackageManager(facts.command)) found.push(pid)
    else if (!/^\S*sh -c /.test(facts.command)) break
  }
  return found
}

/** npm shows itself as "npm exec pnpm start"; the others by their program, or as a script that Node runs. */
function isPackageManager(command: string): boolean {
  const [program = '', script = ''] = command.split(' ')
  const name = basename(program) === 'node' ? basename(script) : basename(program)
  return /^(npm|npx|pnpm|corepack)(-cli)?(\.[cm]?js)?$/.test(name)
}
