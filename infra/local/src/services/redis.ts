// The embedded Redis (or Valkey): durable, without eviction, on the loopback interface only.
import { mkdir } from 'node:fs/promises'
import { Redis } from 'ioredis'
import { onFreePort } from '../processes/port.ts'
import { findRedis, pidFileOf, type RedisSearch } from './find-redis.ts'
import { endOrphan, type ServiceOptions, startService } from './service.ts'

export interface RedisOptions extends RedisSearch, Omit<ServiceOptions, 'password'> {
  /** [none] */
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
    // disk can stop that one for seconds.
    appendonly: 'yes',
    appendfsync: options.durable ? 'everysec' : 'no',
    save: '',
    ...options.settings,
  }
  const service = await onFreePort(options.preferredPort ?? 0, (port) => {
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
      ping: pingRedis,
    })
  })
  // The volume of a container outlives the folder it is named after.
  if (created !== undefined) await redisCommand(service.url, 'FLUSHALL')
  return {
    ...service,
    /** One command over a connection of its own. */
    command: (name: string, ...args: (string | number)[]) => redisCommand(service.url, name, ...args),
  }
}

/** Resolves when a Redis server answers at this url and has loaded its data. */
export async function pingRedis(url: string): Promise<void> {
  await redisCommand(url, 'PING')
}

/** One command to a Redis server or Sentinel, over a connection of its own. */
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
