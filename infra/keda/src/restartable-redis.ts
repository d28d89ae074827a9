// A Redis that can be taken away and brought back at the same address, with the data it had.
import type { RedisOptions } from '@spillway/local/redis'
import type { Service } from '@spillway/local/service'
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

export async function restartableRedis(
  options: RedisOptions,
  start: (options: RedisOptions) => Promise<Service>,
): Promise<RestartableRedis> {
  let service = await start(options)
  const { hostname, port } = new URL(service.url)
  const connection = new Redis(service.url, { enableOfflineQueue: false, retryStrategy: () => 100 })
  connection.on('error', () => {})
  return {
    address: `${hostname}:${port}`,
    connection,
    takeAway: () => service.close(),
    async bringBack() {
      service = await start({ ...options, preferredPort: Number(port) })
    },
    async close() {
      connection.disconnect()
      await service.close()
    },
  }
}
