/** The client of the password queue, in one Redis server or in several. Loads no hashing code. */

import { parseRedisServers } from './redis/servers.js'
import { RedisWatch } from './redis/watch.js'
import { SeveralServersClient } from './servers/several-servers.js'
import { QueueClient } from './wait/one-queue.js'
import type { PasswordClient, QueueClientOptions } from './wait/password-client.js'

export { type ClientErrorCode, PasswordClientError } from './errors.js'
export { connectRedis, quitRedis, type RedisConnection } from './redis/connect.js'
export { RedisWatch } from './redis/watch.js'
export type { Expectation, PendingJob, VerdictSource } from './wait/answers.js'
export type { ClientObserver, PasswordClient, RedisOfQueue } from './wait/password-client.js'
export type { Load } from './wire/capacity.js'
export type { JobName, Lane, RefusalCode, Requests, Verdict } from './wire/job.js'
export { DEFAULT_QUEUE_PREFIX } from './wire/job.js'
export type { JobRef } from './wire/reply.js'
export { type Keyring, parseKeyring, refuseGuessableKeys, SealError } from './wire/seal.js'

export interface PasswordClientOptions extends QueueClientOptions {
  /** One URL, or several separated by white space (see redis/servers.ts). */
  redisUrl: string
  /** Reads `redisUrl` again for each new connection [it never changes]. */
  currentRedisUrl?: () => string
}

export function createPasswordClient({ redisUrl, currentRedisUrl, ...options }: PasswordClientOptions): PasswordClient {
  const [first, ...others] = parseRedisServers(redisUrl, currentRedisUrl)
  if (others.length === 0) return new QueueClient(first, options)
  return new SeveralServersClient([first, ...others], { watch: new RedisWatch(options.log), ...options })
}
