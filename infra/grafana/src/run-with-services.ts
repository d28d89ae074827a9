// Runs a command of this package with a PostgreSQL and a Redis of its own, all built and migrated, and cleans up after it.

import { type Keeper, openKeeper } from '@spillway/local/processes/keeper'
import { report } from '@spillway/local/processes/user-error'
import { readEnvironment } from '@spillway/local/start/environment'
import { toVariables } from '@spillway/local/testing/environment'
import { startTestServices } from '@spillway/local/testing/services'

export interface Run {
  keeper: Keeper
  /** A folder that is gone afterwards. */
  dir: string
}

/** Gives the exit code: that of the command, or 1 when it fails, which is reported. */
export async function runWithServices(command: (run: Run) => Promise<number>): Promise<number> {
  const keeper = openKeeper()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => void keeper.close())
  try {
    const services = await startTestServices(keeper, readEnvironment(process.env))
    try {
      Object.assign(process.env, toVariables(services))
      return await command({ keeper, dir: services.dir })
    } finally {
      await services.close()
    }
  } catch (error) {
    report(error)
    return 1
  } finally {
    await keeper.close()
  }
}
