// A Redis that can be taken away and brought back at the same address, with the data it had.
import { type RedisOptions, startRedis } from '@spillway/local/services/redis'
import type { Service } from '@spillway/local/services/service'
import { Redis } from 'ioredis'

export interface RestartableRedis {
  /** host:port */
  address: string
  /** A connection that comes back with the server. */
  connection: Redis
  /** Stops the server. */
  takeAway(): Promise<void>
  bringBack(): Promise<void>
  close(): Promise<void>
}

/** What KEDA's user may do, as the chart's README has it: count, and nothing else. */
const KEDA_RIGHTS = '~{spillway}:passwords:* resetchannels -@all +hello +ping +select +eval +type +llen +zcard'

/** Starts Redis with a user for KEDA, of the same password as everyone. */
export async function startRestartableRedis(options: RedisOptions, kedaUser: string): Promise<RestartableRedis> {
  let service = await start(options.preferredPort)
  const { hostname, port } = new URL(service.url)
  const connection = new Redis(service.url, { enableOfflineQueue: false, retryStrategy: () => 100 })
  connection.on('error', () => {})
  return {
    address: `${hostname}:${port}`,
    connection,
    takeAway: () => service.close(),
    async bringBack() {
      service = await start(Number(port))
    },
    async close() {
      connection.disconnect()
      await service.close()
    },
  }

  async function start(preferredPort: number): Promise<Service> {
    const started = await startRedis({ ...options, preferredPort })
    const admin = new Redis(started.url)
    try {
      await admin.call('ACL', 'SETUSER', kedaUser, 'on', `>${options.password}`, ...KEDA_RIGHTS.split(' '))
    } finally {
      admin.disconnect()
    }
    return started
  }
}
