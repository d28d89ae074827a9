// What a start needs first: the platform, the packages compiled by turbo (which caches unchanged
// ones), the native hashing engine, and the migrated database.
import { once } from 'node:events'
import { copyFileSync, existsSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { UserError } from '../processes/command-line.ts'
import { type Keeper, logTail, ToolFailure } from '../processes/keeper.ts'
import { defaultStateDir, repositoryDir } from '../processes/repository.ts'
import { onPath } from '../processes/run.ts'
import { takeLock } from './lock.ts'

/** How long to wait for another build in this checkout. */
const WAIT_MS = 300_000

/** For several attempts to connect. */
const REDIS_WAIT_MS = 5_000

const turbo = join(repositoryDir, 'node_modules', '.bin', 'turbo')

/** Builds these packages and their dependencies [all packages]. Silent unless it fails. */
export async function build(keeper: Keeper, packages: string[] = []): Promise<void> {
  // One build at a time, because builds write the same files.
  const lock = await takeLock(join(defaultStateDir, 'build.lock'), keeper, WAIT_MS)
  if (!lock) throw new UserError('Another build of this checkout does not end: stop it and try again.')
  const filters = packages.map((name) => `--filter=${name}...`)
  // turbo looks for pnpm on the PATH, where `npx pnpm` puts it, and `npx vitest` does not.
  const [command, ...args] = onPath(['pnpm']) === undefined ? ['npx', '--yes', 'pnpm', 'exec', 'turbo'] : [turbo]
  try {
    await keeper.run({
      command,
      args: [...args, 'run', 'build', '--output-logs=errors-only', '--log-order=grouped', ...filters],
      cwd: repositoryDir,
      env: { ...process.env, TURBO_TELEMETRY_DISABLED: '1', TURBO_NO_UPDATE_NOTIFIER: '1' },
    })
  } catch (error) {
    throw error instanceof ToolFailure ? new UserError(`The build failed.\n${error.output}`) : error
  } finally {
    lock.close()
  }
}

/** By the same command as deployments. Needs a build. */
export async function migrate(keeper: Keeper, databaseUrl: string): Promise<void> {
  try {
    await keeper.run({
      command: process.execPath,
      args: ['prisma/dist/migrate.js'],
      cwd: repositoryDir,
      env: { ...process.env, DATABASE_URL: databaseUrl },
    })
  } catch (error) {
    throw error instanceof ToolFailure
      ? new UserError(`The database cannot be migrated: ${logTail(error.output)}`)
      : error
  }
}

/** Throws a UserError when REDIS_URL is set, and nothing answers there. Needs a build. */
export async function checkRedis(url: string | undefined): Promise<void> {
  if (url === undefined) return
  const { connectRedis } = await import('@spillway/queue/redis/connect')
  try {
    const redis = connectRedis(url, 'producer')
    await once(redis, 'ready', { signal: AbortSignal.timeout(REDIS_WAIT_MS) }).finally(() => {
      redis.on('error', () => undefined)
      redis.disconnect()
    })
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    const unanswered = `REDIS_URL is set, but nothing answers there (${why}): start that server, or unset REDIS_URL.`
    throw new UserError(why.startsWith('REDIS_URL') ? `${why}.` : unanswered, { cause })
  }
}

/** Throws a UserError on a Node that is too old, and on Windows itself. */
export function checkPlatform(): void {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  if (major < 20 || (major === 20 && minor < 19)) {
    throw new UserError(
      `Spillway needs Node 20.19 or newer, and this is ${process.versions.node}: install a newer one.`,
    )
  }
  if (process.platform === 'win32') throw new UserError('Redis does not run on Windows itself: use WSL 2.')
}

// The native hashing engine is optional: without it, npm packages hash.

const crate = join(repositoryDir, 'worker', 'engine')
/** The path from which workers load it (worker/src/hashing/native.ts). */
const addon = join(crate, 'spillway.node')
const library = `libspillway_engine.${process.platform === 'darwin' ? 'dylib' : 'so'}`

const TOLD_AFTER_MS = 3_000

export function hasEngine(): boolean {
  return existsSync(addon)
}

/** Builds the engine, if cargo is installed. A failure prints a line and does not reject. */
export async function buildEngine(
  keeper: Keeper,
  say: (sentence: string) => void,
  { inBackground = false } = {},
): Promise<boolean> {
  if (onPath(['cargo']) === undefined) return false
  try {
    // One build at a time, by cargo's own lock.
    await runCargo(keeper, say, inBackground)
    // Renamed into place: a worker that has loaded the old file keeps it.
    const copy = join(crate, 'target', `${process.pid}.node`)
    copyFileSync(join(crate, 'target', 'release', library), copy)
    renameSync(copy, addon)
    return true
  } catch (error) {
    // A build of an older source must not be used.
    rmSync(addon, { force: true })
    const reason = error instanceof Error ? error.message : String(error)
    if (!keeper.closing)
      say(`The native hashing engine cannot be built here, the packages hash in its place: ${reason}`)
    return false
  }
}

/** Told after a few seconds: a build without a change is quicker. */
async function runCargo(keeper: Keeper, say: (sentence: string) => void, inBackground: boolean): Promise<void> {
  const once = hasEngine() ? 'because it changed' : 'once'
  const meanwhile = inBackground ? ', at the lowest priority. Until the next start the packages hash.' : '.'
  const tell = () =>
    say(`Building the native hashing engine with cargo, ${once}: about a minute of two cores${meanwhile}`)
  const timer = setTimeout(tell, TOLD_AFTER_MS)
  const cargo = ['cargo', 'build', '--release', '--locked', '--features', 'addon']
  const [command = '', ...args] = inBackground ? ['nice', '-n', '19', ...cargo] : cargo
  // Fails soon without a network.
  const env = { ...process.env, CARGO_NET_RETRY: '1', CARGO_HTTP_TIMEOUT: '10', CARGO_TERM_COLOR: 'never' }
  await keeper.run({ command, args, cwd: crate, env }).finally(() => clearTimeout(timer))
}
