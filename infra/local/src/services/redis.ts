// The embedded Redis (or Valkey): durable, without eviction, on the loopback interface only. Its
// program is on the PATH, or Debian's package unpacked, or in a container.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { UserError } from '../processes/command-line.ts'
import type { Tool } from '../processes/keeper.ts'
import { onFreePort } from '../processes/port.ts'
import { onPath } from '../processes/run.ts'
import { aptProgram } from './apt-packages.ts'
import { endOrphan, type ServiceOptions, startService } from './service.ts'

type RedisSearch = Pick<ServiceOptions, 'keeper' | 'dir' | 'durable' | 'say'> & {
  /** The folder of fetched programs [the ignored one]. */
  programsDir?: string
  /** What dpkg has installed [of this system]. */
  statusFile?: string
}

export interface RedisOptions extends RedisSearch, Omit<ServiceOptions, 'password'> {
  password?: string
  /** Lines of its configuration, on top of those that all have. */
  settings?: Record<string, string>
}

/** Starts Redis on the data of its last run. Rejects with a UserError without a Redis server. */
export async function startRedis(options: RedisOptions) {
  const { keeper, dir, password = '', logFile } = options
  const created = await mkdir(dir, { recursive: true, mode: 0o700 })
  const program = await findRedis(options)
  await endOrphan(pidFileOf(dir), /(redis|valkey)-server/, 'SIGTERM')
  const config = {
    ...(password !== '' && { requirepass: password }),
    'maxmemory-policy': 'noeviction',
    // Jobs survive a restart. If the machine crashes, a durable Redis loses the last second; a slow
    // disk can stop it for seconds.
    appendonly: 'yes',
    appendfsync: options.durable ? 'everysec' : 'no',
    save: '',
    ...options.settings,
  }
  const service = await onFreePort(options.preferredPort, (port) => {
    const { process, settings } = program(port)
    return startService({
      keeper,
      name: 'Redis',
      process,
      // By standard input, so that neither a file nor the list of processes shows the password.
      input: Object.entries({ ...settings, ...config })
        .map(([name, value]) => `${name} ${JSON.stringify(value)}\n`)
        .join(''),
      logFile,
      // redis-cli takes no URL with a password and no user.
      url: `redis://${password && `default:${encodeURIComponent(password)}@`}127.0.0.1:${port}`,
      ping: (url) => redisCommand(url, 'PING'),
    })
  })
  // The volume of a container outlives the folder it is named after.
  if (created !== undefined) await redisCommand(service.url, 'FLUSHALL')
  return {
    ...service,
    command: (name: string, ...args: (string | number)[]) => redisCommand(service.url, name, ...args),
  }
}

/** Runs one command on a new connection to Redis or Sentinel. Resolves with the reply. */
export async function redisCommand(url: string, name: string, ...args: (string | number)[]): Promise<unknown> {
  const client = new Redis(url, { lazyConnect: true, connectTimeout: 60_000, retryStrategy: null })
  client.on('error', () => {})
  try {
    await client.connect()
    return await client.call(name, ...args)
  } finally {
    client.disconnect()
  }
}

// The sources of the Redis program: the PATH, apt packages, a container.

/** Returns the command for a server on this port of the loopback interface. */
type RedisProgram = (port: number) => {
  process: Tool
  /** The part of its configuration that depends on where it runs. */
  settings: Record<string, string>
}

/** Rejects with a UserError: the reason of each source. */
export async function findRedis(search: RedisSearch): Promise<RedisProgram> {
  const failures: string[] = []
  // From the least to the most intrusive. Nothing is installed.
  for (const source of [pathRedis, aptRedis, containerRedis]) {
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

/** Valkey speaks the same protocol. */
export const serverNames = ['redis-server', 'valkey-server']

async function pathRedis({ dir }: RedisSearch): Promise<RedisProgram | undefined> {
  const command = onPath(serverNames)
  if (command === undefined) return undefined
  execFileSync(command, ['--version'], { stdio: 'ignore' })
  return localProgram(command, dir)
}

/** Undefined on systems without apt. */
export async function aptRedis({ dir, say, ...search }: RedisSearch): Promise<RedisProgram | undefined> {
  const announce = (): void =>
    say('No Redis on the PATH: fetching one with apt-get (into the ignored folder; nothing is installed).')
  // Debian's redis-server is a link to a program of redis-tools.
  const packages = ['redis-server redis-tools', 'valkey-server valkey-tools']
  const program = await aptProgram({ ...search, name: 'redis', packages, commands: serverNames, announce })
  return program && localProgram(program.command, dir, program.env)
}

function localProgram(command: string, dir: string, env: NodeJS.ProcessEnv = {}): RedisProgram {
  return (port) => ({
    process: { command, args: ['-'], cwd: dir, env: { ...process.env, ...env } },
    settings: { bind: '127.0.0.1', port: String(port), dir, pidfile: pidFileOf(dir) },
  })
}

function pidFileOf(dir: string): string {
  return join(dir, 'redis.pid')
}

const image = 'redis:8-alpine'

/** Redis with its data in a volume named after its folder; undefined where no engine answers. */
async function containerRedis({ keeper, dir, durable, say }: RedisSearch): Promise<RedisProgram | undefined> {
  const name = `spillway-${createHash('sha256').update(dir).digest('hex').slice(0, 12)}`
  for (const engine of ['docker', 'podman']) {
    const succeeds = (...args: string[]): Promise<boolean> =>
      keeper.run({ command: engine, args }).then(
        () => true,
        () => false,
      )
    if (onPath([engine]) === undefined || !(await succeeds('info'))) continue
    say(`No Redis on the PATH: running ${image} with ${engine}.`)
    await keeper.run({ command: engine, args: ['pull', '--quiet', image] })
    // A container that a killed run left behind.
    await succeeds('rm', '--force', name)
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
