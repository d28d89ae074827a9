// Builds the native hashing engine if cargo is installed. It is optional: without it, npm packages hash.
import { copyFileSync, existsSync, renameSync, rmSync } from 'node:fs'
import { constants, setPriority } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type Keeper, stopOrder } from '../processes/keeper.ts'
import { logTail } from '../processes/log-tail.ts'
import { defaultStateDir, repositoryDir } from '../processes/repository.ts'
import { onPath } from '../services/on-path.ts'
import { takeLock } from './lock.ts'

const crate = join(repositoryDir, 'worker', 'engine')
/** The path from which workers load it (worker/src/hashing/native.ts). */
const addon = join(crate, 'spillway.node')
const library = `libspillway_engine.${process.platform === 'darwin' ? 'dylib' : 'so'}`

const progressMs = 15_000
/** How long to wait for another build of it. */
const waitMs = 900_000

/** Whether it has been built here before. */
export function hasEngine(): boolean {
  return existsSync(addon)
}

export interface EngineBuildOptions {
  /** At the lowest priority, and without messages until it is built. */
  inBackground?: boolean
}

/** Builds the engine if its source has changed. A failed build prints one line and does not reject. */
export async function buildEngine(
  keeper: Keeper,
  say: (sentence: string) => void,
  { inBackground = false }: EngineBuildOptions = {},
): Promise<void> {
  if (onPath(['cargo']) === undefined) return
  const lock = await takeLock(join(defaultStateDir, 'engine.lock'), keeper, waitMs)
  if (!lock) return
  try {
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

/** Without `say` it is built at the lowest priority. */
async function runCargo(keeper: Keeper, say: ((sentence: string) => void) | undefined): Promise<void> {
  const child = keeper.spawn({
    command: 'cargo',
    args: ['build', '--release', '--locked', '--features', 'addon'],
    stopOrder: stopOrder.tool,
    cwd: crate,
    // Fails soon without a network.
    env: { ...process.env, CARGO_NET_RETRY: '1', CARGO_HTTP_TIMEOUT: '10', CARGO_TERM_COLOR: 'never' },
  })
  child.stdin?.end()
  if (say === undefined && child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_LOW)
  const once = hasEngine() ? 'because it changed' : 'once'
  const lines: string[] = []
  let crates = 0
  for (const stream of [child.stdout, child.stderr]) {
    if (stream === null) continue
    createInterface({ input: stream }).on('line', (line) => {
      lines.push(line)
      if (!/^\s*Compiling /.test(line)) return
      if (crates === 0) say?.(`Building the native hashing engine with cargo, ${once}: about a minute of two cores.`)
      crates += 1
    })
  }
  const progress = setInterval(() => crates > 0 && say?.(`  ${crates} of its crates so far ...`), progressMs)
  const code = await new Promise((resolve) => child.on('close', resolve).on('error', resolve))
  clearInterval(progress)
  if (code !== 0) throw new Error(logTail(lines.join('\n')))
}
