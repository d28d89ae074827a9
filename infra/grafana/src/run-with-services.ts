// Runs a command of this package on a PostgreSQL and a Redis server of its own, built and migrated.
import { runWithKeeper } from '@spillway/local/processes/command'
import type { Keeper } from '@spillway/local/processes/keeper'
import { toVariables } from '@spillway/local/rig/namespace'
import { startTestServices } from '@spillway/local/rig/services'
import { readEnvironment } from '@spillway/local/start/environment'

export interface Run {
  keeper: Keeper
  /** A folder that is deleted afterwards. */
  dir: string
}

/** An error of the command is reported and makes the exit code 1. */
export async function runWithServices(command: (run: Run) => Promise<unknown>): Promise<void> {
  await runWithKeeper(async (keeper) => {
    const services = await startTestServices(keeper, readEnvironment(process.env))
    Object.assign(process.env, toVariables(services))
    await command({ keeper, dir: services.dir }).finally(() => services.close())
  })
}
