// The frame of a command: an error is reported and makes the exit code 1.
import { type Keeper, openKeeper } from './keeper.ts'
import { report } from './user-error.ts'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

export async function runCommand(command: () => unknown): Promise<void> {
  try {
    await command()
  } catch (error) {
    report(error)
    process.exitCode = 1
  }
}

/** A command that starts processes: they end with it, and a signal ends them first. */
export async function runWithKeeper(command: (keeper: Keeper) => Promise<unknown>): Promise<void> {
  const keeper = openKeeper()
  const stop = () => {
    process.exitCode = 1
    void keeper.close()
  }
  for (const signal of SIGNALS) process.on(signal, stop)
  await runCommand(() => command(keeper))
  await keeper.close()
  for (const signal of SIGNALS) process.off(signal, stop)
}
