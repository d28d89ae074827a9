/** The client of the password queue, in one Redis server or in several. Loads no hashing code. */
import { createQueueClient } from './passwords/one-queue.js'
import type { PasswordClient, QueueClientOptions } from './passwords/password-client.js'
import { parseRedisServers } from './redis/servers.js'
import { watchRedis } from './redis/watch.js'
import { createSeveralServersClient } from './servers/several-servers.js'

export { type ClientErrorCode, PasswordClientError } from './errors.js'
export type { PendingJob, VerdictSource } from './passwords/answers.js'
export type { Expectation } from './passwords/expectation.js'
export type { ClientObserver, PasswordClient, RedisOfQueue } from './passwords/password-client.js'
export type { Load } from './protocol/capacity.js'
export type { JobName, Lane, RefusalCode, Requests, Verdict } from './protocol/job.js'
export { DEFAULT_QUEUE_PREFIX } from './protocol/job.js'
export type { JobRef } from './protocol/reply.js'
export { type Keyring, parseKeyring, refuseGuessableKeys, SealError } from './protocol/seal.js'
export { connectRedis, quitRedis, type RedisConnection } from './redis/connect.js'
export { type RedisWatch, watchRedis } from './redis/watch.js'

export interface PasswordClientOptions extends QueueClientOptions {
  /** One URL, or several separated by white space (see redis/servers.ts). */
  redisUrl: string
}

export function createPasswordClient({ redisUrl, ...options }: PasswordClientOptions): PasswordClient {
  const [first, ...others] = parseRedisServers(redisUrl)
  if (others.length === 0) return createQueueClient(first, options)
  return createSeveralServersClient([first, ...others], { watch: watchRedis(options.log), ...options })
}
