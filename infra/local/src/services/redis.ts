// The embedded Redis (or Valkey): durable, without eviction, on the loopback interface only. Its
// program is on the PATH, or Debian's package unpacked.
import { mkdir } from 'node:fs/promises'
import { Redis } from 'ioredis'
import { UserError } from '../processes/command-line.ts'
import type { Tool } from '../processes/keeper.ts'
import { onFreePort } from '../processes/port.ts'
import { findProgram } from './apt-packages.ts'
import { type ProgramOptions, type ServiceOptions, startService } from './service.ts'

export interface RedisOptions extends ServiceOptions {
  password?: string
  /** Lines of its configuration, on top of those that all have. */
  settings?: Record<string, string>
}

/** Starts Redis on the data of its last run. Rejects with a UserError without a Redis server. */
export async function startRedis(options: RedisOptions) {
  const { keeper, dir, password = '', logFile } = options
  await mkdir(dir, { recursive: true, mode: 0o700 })
  const process = await findRedis(options)
  const config = {
    ...(password !== '' && { requirepass: password }),
    bind: '127.0.0.1',
    dir,
    'maxmemory-policy': 'noeviction',
    // Jobs survive a restart. If the machine crashes, a durable Redis loses the last second; a slow
    // disk can stop it for seconds.
    appendonly: 'yes',
    appendfsync: options.durable ? 'everysec' : 'no',
    save: '',
    ...options.settings,
  }
  const service = await onFreePort(options.preferredPort, (port) =>
    startService({
      keeper,
      name: 'Redis',
      process,
      // By standard input, so that neither a file nor the list of processes shows the password.
      input: Object.entries({ ...config, port })
        .map(([name, value]) => `${name} ${JSON.stringify(String(value))}\n`)
        .join(''),
      logFile,
      // redis-cli takes no URL with a password and no user.
      url: `redis://${password && `default:${encodeURIComponent(password)}@`}127.0.0.1:${port}`,
      ping: (url) => redisCommand(url, 'PING'),
    }),
  )
  return {
    ...service,
    command: (name: string, ...args: (string | number)[]) => redisCommand(service.url, name, ...args),
  }
}

/** A server that reads its configuration from its standard input. */
export async function findRedis({ keeper, dir, say }: ProgramOptions): Promise<Tool> {
  const program = await findProgram({
    keeper,
    names: ['redis-server', 'valkey-server'],
    // Debian's redis-server is a link to a program of redis-tools.
    packages: ['redis-server', 'redis-tools'],
    say,
  })
  if (program) return { args: ['-'], cwd: dir, ...program }
  throw new UserError('There is no Redis here: put redis-server or valkey-server on the PATH, or set REDIS_URL.')
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
