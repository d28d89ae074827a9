// The embedded Redis (or Valkey): durable, without eviction, on the loopback interface only.
import { mkdir } from 'node:fs/promises'
import { Redis } from 'ioredis'
import { endOrphan } from '../processes/orphan.ts'
import { onFreePort } from '../processes/port.ts'
import { findRedis } from './find-redis.ts'
import { pidFileOf, type RedisSearch } from './redis-program.ts'
import { type Service, startService } from './service.ts'

export interface RedisOptions extends RedisSearch {
  logFile: string
  /** Used if it is free, else any other port. */
  preferredPort: number
  password: string
}

/** Starts Redis on the data of its last run. Rejects with a UserError when none can be had. */
export async function startRedis(options: RedisOptions): Promise<Service> {
  const { keeper, dir, password, logFile } = options
  const created = await mkdir(dir, { recursive: true, mode: 0o700 })
  const program = await findRedis(options)
  await endOrphan(pidFileOf(dir), /(redis|valkey)-server/, 'SIGTERM')
  const config = {
    requirepass: password,
    'maxmemory-policy': 'noeviction',
    // Jobs survive a restart. If the machine crashes, a durable Redis loses the last second; a slow disk can stop that one for seconds.
    appendonly: 'yes',
    appendfsync: options.durable ? 'everysec' : 'no',
    save: '',
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
      url: `redis://:${encodeURIComponent(password)}@127.0.0.1:${port}`,
      ping: pingRedis,
    })
  })
  // The volume of a container outlives the folder it is named after.
  if (created !== undefined) await command(service.url, 'FLUSHALL')
  return service
}

/** Resolves when a Redis answers at this url and has loaded its data. */
export async function pingRedis(url: string): Promise<void> {
  await command(url, 'PING')
}

async function command(url: string, name: string): Promise<void> {
  const client = new Redis(url, { lazyConnect: true, connectTimeout: 60_000, retryStrategy: null })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.call(name)
  } finally {
    client.disconnect()
  }
}
