// Detects the end of the package manager that launched this process: someone may kill npx or pnpm, of which this is a descendant.
import { basename } from 'node:path'
import { findProcess, isRunning } from './process-table.ts'

const pollMs = 500

/**
 * Calls back once when an ancestor that is a package manager has ended, for any reason. Shells between them do not count: they may
 * start a background process and exit.
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

/** The ancestors that are npx, npm or pnpm, nearest first. */
function findLaunchers(): number[] {
  const found: number[] = []
  let pid = process.ppid
  for (let facts = findProcess(pid); facts; pid = facts.parentPid, facts = findProcess(pid)) {
    if (isPackageManager(facts.command)) found.push(pid)
    else if (!/^\S*sh -c /.test(facts.command)) break
  }
  return found
}

/** npm sets its title to "npm exec pnpm start"; the others show their program, or a script that Node runs. */
function isPackageManager(command: string): boolean {
  const [program = '', script = ''] = command.split(' ')
  const name = basename(program) === 'node' ? basename(script) : basename(program)
  return /^(npm|npx|pnpm|corepack)(-cli)?(\.[cm]?js)?$/.test(name)
}
