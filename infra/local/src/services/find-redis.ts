// Finds a Redis server: the PATH, else Debian's package unpacked into the ignored folder, else a
// container engine.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { UserError } from '../processes/command-line.ts'
import type { Tool } from '../processes/keeper.ts'
import { onPath } from '../processes/run.ts'
import { aptProgram } from './apt-packages.ts'
import type { ServiceOptions } from './service.ts'

/** Of a container. */
const image = 'redis:8-alpine'

/** How to run a Redis server so that it answers on this port of the loopback interface. */
type RedisProgram = (port: number) => {
  process: Tool
  /** The part of its configuration that depends on where it runs. */
  settings: Record<string, string>
}

/** The options of startRedis that a search takes. */
export type RedisSearch = Pick<ServiceOptions, 'keeper' | 'dir' | 'durable' | 'say'> & {
  /** The folder of fetched programs [the ignored one]. */
  programsDir?: string | undefined
  /** What dpkg has installed [of this system]. */
  statusFile?: string | undefined
}

/**
 * A Redis server that is a program of this system, run on a data folder with these variables added
 * to its environment.
 */
function localProgram(command: string, dir: string, env: NodeJS.ProcessEnv = {}): RedisProgram {
  return (port) => ({
    process: { command, args: ['-'], cwd: dir, env: { ...process.env, ...env } },
    settings: { bind: '127.0.0.1', port: String(port), dir, pidfile: pidFileOf(dir) },
  })
}

/** The file with the pid of the process that uses a data folder. */
export function pidFileOf(dir: string): string {
  return join(dir, 'redis.pid')
}

/** Valkey speaks the same protocol. */
export const serverNames = ['redis-server', 'valkey-server']

/**
 * One place that a Redis server may come from: undefined where it does not apply, a rejection where
 * it should have worked.
 */
type RedisSource = (search: RedisSearch) => Promise<RedisProgram | undefined>

/** From the least to the most intrusive; no way installs anything. */
const sources: RedisSource[] = [pathRedis, aptRedis, containerRedis]

/** The first Redis server that works. Rejects with a UserError: the reason of each source. */
export async function findRedis(search: RedisSearch): Promise<RedisProgram> {
  const failures: string[] = []
  for (const source of sources) {
    try {
      const program = await source(search)
      if (program) return program
    } catch (error) {
      if (search.keeper.closing) throw error
      failures.push(error instanceof Error ? error.message : String(error))
    }
  }
  const why = failures.length > 0 ? ` (${failures.join('; ')})` : ''
  throw new UserError(
    'No Redis could be had: install redis-server or valkey-server, start Docker or Podman, ' +
      `or set REDIS_URL to your own Redis server.${why}`,
  )
}

async function pathRedis({ dir }: RedisSearch): Promise<RedisProgram | undefined> {
  const command = onPath(serverNames)
  if (command === undefined) return undefined
  execFileSync(command, ['--version'], { stdio: 'ignore' })
  return localProgram(command, dir)
}

/** An unpacked Redis or Valkey, fetched at the first call. Undefined on systems without apt. */
export async function aptRedis({
  keeper,
  dir,
  programsDir,
  statusFile,
  say,
}: RedisSearch): Promise<RedisProgram | undefined> {
  const announce = (): void =>
    say('No Redis on the PATH: fetching one with apt-get (into the ignored folder; nothing is installed).')
  // Debian's redis-server is a link to a program of redis-tools.
  const packages = ['redis-server redis-tools', 'valkey-server valkey-tools']
  const names = { name: 'redis', packages, commands: serverNames }
  const program = await aptProgram({ keeper, programsDir, statusFile, ...names, announce })
  return program && localProgram(program.command, dir, program.env)
}

/** Redis with its data in a volume named after its folder; undefined where no engine answers. */
async function containerRedis({ keeper, dir, durable, say }: RedisSearch): Promise<RedisProgram | undefined> {
  const name = `spillway-${createHash('sha256').update(dir).digest('hex').slice(0, 12)}`
  for (const engine of ['docker', 'podman']) {
    const run = (...args: string[]): Promise<boolean> =>
      keeper.run({ command: engine, args }).then(
        () => true,
        () => false,
      )
    if (onPath([engine]) === undefined || !(await run('info'))) continue
    say(`No Redis on the PATH: running ${image} with ${engine}.`)
    await keeper.run({ command: engine, args: ['pull', '--quiet', image] })
    // A container that a killed run left behind.
    await run('rm', '--force', name)
    return (port) => {
      const where = ['--name', name, '--publish', `127.0.0.1:${port}:6379`]
      if (durable) where.push('--volume', `${name}:/data`)
      return {
        process: { command: engine, args: ['run', '--rm', '--interactive', ...where, image, 'redis-server', '-'] },
        settings: { bind: '0.0.0.0', port: '6379', dir: '/data' },
      }
    }
  }
  return undefined
}
