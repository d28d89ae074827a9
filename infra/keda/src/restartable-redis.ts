// A Redis server that can be stopped and started again at the same address, with the data it had.
import { type RedisOptions, startRedis } from '@spillway/local/services/redis'
import { Redis } from 'ioredis'

/** The rights of KEDA's user, as in the chart's README: to count, and nothing else. */
const KEDA_RIGHTS = '~{spillway}:passwords:* resetchannels -@all +hello +ping +select +eval +type +llen +zcard'

/** Starts Redis with a user for KEDA, with the password of the default user. */
export async function startRestartableRedis(options: RedisOptions, kedaUser: string) {
  const service = await startRedis(options)
  const addUser = () =>
    service.command('ACL', 'SETUSER', kedaUser, 'on', `>${options.password}`, ...KEDA_RIGHTS.split(' '))
  await addUser()
  const connection = new Redis(service.url, { enableOfflineQueue: false, retryStrategy: () => 100 })
  connection.on('error', () => {})
  return {
    /** host:port */
    address: new URL(service.url).host,
    /** A connection that comes back with the server. */
    connection,
    stop: () => service.close(),
    async startAgain() {
      await service.start()
      await addUser()
    },
    async close() {
      connection.disconnect()
      await service.close()
    },
  }
}
