// The frame of a command: an error is reported and makes the exit code 1.
import { onLauncherGone } from './ancestors.ts'
import { type Keeper, openKeeper } from './keeper.ts'
import { report, UserError } from './user-error.ts'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

export async function runCommand(command: () => unknown): Promise<void> {
  try {
    await command()
  } catch (error) {
    report(error)
    process.exitCode = 1
  }
}

/** A command that starts processes: they end with it, and a signal, or the end of the package manager, ends them first. */
export async function runWithKeeper(command: (keeper: Keeper) => Promise<unknown>): Promise<void> {
  const keeper = openKeeper()
  // Closing the keeper ends all processes, and with them all that is awaited; the `finally` blocks of the command clean up.
  const stop = () => void keeper.close()
  for (const signal of SIGNALS) process.on(signal, stop)
  const launcher = onLauncherGone(stop)
  await runCommand(async () => {
    const stopped = () => new UserError('Stopped before the end.')
    await command(keeper).catch((error) => {
      throw keeper.closing ? stopped() : error
    })
    if (keeper.closing) throw stopped()
  })
  await keeper.close()
  launcher.close()
  for (const signal of SIGNALS) process.off(signal, stop)
}
