// Builds the native hashing engine if cargo is installed. It is optional: without it, npm packages hash.
import { copyFileSync, existsSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Keeper } from '../processes/keeper.ts'
import { defaultStateDir, repositoryDir } from '../processes/repository.ts'
import { onPath } from '../processes/run.ts'
import { takeLock } from './lock.ts'

const crate = join(repositoryDir, 'worker', 'engine')
/** The path from which workers load it (worker/src/hashing/native.ts). */
const addon = join(crate, 'spillway.node')
const library = `libspillway_engine.${process.platform === 'darwin' ? 'dylib' : 'so'}`

const TOLD_AFTER_MS = 3_000
/** How long to wait for another build of it. */
const waitMs = 900_000

/** Whether it has been built here before. */
export function hasEngine(): boolean {
  return existsSync(addon)
}

/** Builds the engine if its source has changed. A failed build prints one line and does not reject. */
export async function buildEngine(
  keeper: Keeper,
  say: (sentence: string) => void,
  { inBackground = false } = {},
): Promise<void> {
  if (onPath(['cargo']) === undefined) return
  const lock = await takeLock(join(defaultStateDir, 'engine.lock'), keeper, waitMs)
  if (!lock) return
  try {
    // Without messages in the background, and at the lowest priority.
    await runCargo(keeper, inBackground ? undefined : say)
    const built = join(crate, 'target', 'release', library)
    // Renamed into place: a worker that has loaded the old file keeps it.
    copyFileSync(built, `${addon}.new`)
    renameSync(`${addon}.new`, addon)
    if (inBackground) say('The native hashing engine is built: the next start uses it.')
  } catch (error) {
    // A build of an older source must not be used.
    rmSync(addon, { force: true })
    const reason = error instanceof Error ? error.message : String(error)
    if (!keeper.closing)
      say(`The native hashing engine cannot be built here, the packages hash in its place: ${reason}`)
  } finally {
    lock.close()
  }
}

/** Told after a few seconds: a build without a change is quicker. */
async function runCargo(keeper: Keeper, say: ((sentence: string) => void) | undefined): Promise<void> {
  const once = hasEngine() ? 'because it changed' : 'once'
  const tell = () => say?.(`Building the native hashing engine with cargo, ${once}: about a minute of two cores.`)
  const timer = setTimeout(tell, TOLD_AFTER_MS)
  const cargo = ['cargo', 'build', '--release', '--locked', '--features', 'addon']
  const [command = '', ...args] = say === undefined ? ['nice', '-n', '19', ...cargo] : cargo
  // Fails soon without a network.
  const env = { ...process.env, CARGO_NET_RETRY: '1', CARGO_HTTP_TIMEOUT: '10', CARGO_TERM_COLOR: 'never' }
  await keeper.run({ command, args, cwd: crate, env }).finally(() => clearTimeout(timer))
}
