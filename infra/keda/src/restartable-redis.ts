// A Redis that can be stopped and started again at the same address, with the data it had.
import { type RedisOptions, startRedis } from '@spillway/local/services/redis'
import { Redis } from 'ioredis'

export interface RestartableRedis {
  /** host:port */
  address: string
  /** A connection that comes back with the server. */
  connection: Redis
  stop(): Promise<void>
  startAgain(): Promise<void>
  close(): Promise<void>
}

/** The rights of KEDA's user, as in the chart's README: to count, and nothing else. */
const KEDA_RIGHTS = '~{spillway}:passwords:* resetchannels -@all +hello +ping +select +eval +type +llen +zcard'

/** Starts Redis with a user for KEDA, whose password is that of the default user. */
export async function startRestartableRedis(options: RedisOptions, kedaUser: string): Promise<RestartableRedis> {
  const start = async (preferredPort: number) => {
    const started = await startRedis({ ...options, preferredPort })
    const admin = new Redis(started.url)
    await admin
      .call('ACL', 'SETUSER', kedaUser, 'on', `>${options.password}`, ...KEDA_RIGHTS.split(' '))
      .finally(() => admin.disconnect())
    return started
  }
  let service = await start(options.preferredPort)
  const { host: address, port } = new URL(service.url)
  const connection = new Redis(service.url, { enableOfflineQueue: false, retryStrategy: () => 100 })
  connection.on('error', () => {})
  return {
    address,
    connection,
    stop: () => service.close(),
    async startAgain() {
      service = await start(Number(port))
    },
    async close() {
      connection.disconnect()
      await service.close()
    },
  }
}
