// Compiles the packages with turbo, which caches unchanged ones.
import { join } from 'node:path'
import { type Keeper, ToolFailure } from '../processes/keeper.ts'
import { defaultStateDir, repositoryDir } from '../processes/repository.ts'
import { UserError } from '../processes/user-error.ts'
import { takeLock } from './lock.ts'

/** How long to wait for another build of this checkout. */
const waitMs = 300_000

const turbo = join(repositoryDir, 'node_modules', '.bin', 'turbo')

/** Turns off turbo's telemetry and update notices. */
const turboEnv = { TURBO_TELEMETRY_DISABLED: '1', TURBO_NO_UPDATE_NOTIFIER: '1' }

/** Builds these packages and their dependencies; all packages if no package is named. Silent unless it fails. */
export async function build(keeper: Keeper, packages: string[] = []): Promise<void> {
  // One build at a time, because builds write the same files.
  const lock = await takeLock(join(defaultStateDir, 'build.lock'), keeper, waitMs)
  if (!lock) throw new UserError('Another build of this checkout does not end: stop it and try again.')
  const filters = packages.map((name) => `--filter=${name}...`)
  try {
    await keeper.run({
      command: turbo,
      args: ['run', 'build', '--output-logs=errors-only', '--log-order=grouped', ...filters],
      cwd: repositoryDir,
      env: { ...process.env, ...turboEnv },
    })
  } catch (error) {
    throw error instanceof ToolFailure ? new UserError(`The build failed.\n${error.output}`) : error
  } finally {
    lock.close()
  }
}
