// The frame of a command: an error is reported and makes the exit code 1.
import { report, UserError } from './command-line.ts'
import { Keeper } from './keeper.ts'
import { findProcess, isRunning } from './process-table.ts'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** What a shell reports for a program that SIGPIPE ended. Node ignores that signal. */
const NOBODY_READS = 141

/** @param onUnread called when the standard output cannot be written [exits when nobody reads it] */
export async function runCommand(command: () => unknown, onUnread = exitUnread): Promise<void> {
  process.stdout.on('error', onUnread)
  process.stderr.on('error', () => undefined)
  try {
    await command()
  } catch (error) {
    report(error)
    process.exitCode = 1
  }
}

function exitUnread(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error
  process.exit(NOBODY_READS)
}

/**
 * A command that starts processes: they end with it, and a signal, or the end of the package
 * manager, ends them first.
 *
 * @param isEndless a signal is the ordinary end of the command
 */
export async function runWithKeeper(
  command: (keeper: Keeper) => Promise<unknown>,
  { isEndless = false } = {},
): Promise<void> {
  const keeper = new Keeper()
  // Closing the keeper ends all processes, and with them all that is awaited; the `finally` blocks
  // of the command clean up.
  const stop = () => {
    if (isEndless && !keeper.closing) console.log('Stopping ...')
    void keeper.close()
  }
  for (const signal of SIGNALS) process.on(signal, stop)
  const launcher = onLauncherGone(stop)
  const run = async () => {
    await command(keeper).catch((error) => {
      if (!keeper.closing) throw error
    })
    if (keeper.closing && !isEndless) throw new UserError('Stopped before the end.')
  }
  // The terminal of an endless command may close first: all the same, it ends its processes in order.
  await runCommand(run, isEndless ? () => undefined : exitUnread)
  await keeper.close()
  launcher.close()
  for (const signal of SIGNALS) process.off(signal, stop)
}

const pollMs = 500

/**
 * Calls back once when npx or pnpm, an ancestor of this process, has ended. Shells between them do
 * not count: they may start a background process and exit.
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

function findLaunchers(): number[] {
  const found: number[] = []
  let pid = process.ppid
  for (let facts = findProcess(pid); facts; pid = facts.parentPid, facts = findProcess(pid)) {
    if (PACKAGE_MANAGER.test(facts.command)) found.push(pid)
    else if (!/^\S*sh -c /.test(facts.command)) break
  }
  return found
}

/** npm's title is "npm exec pnpm start"; others show their program, or a script that Node runs. */
const PACKAGE_MANAGER = /^(\S*\/)?(node \S*\/)?(npm|npx|pnpm|corepack)(-cli)?(\.[cm]?js)?( |$)/
