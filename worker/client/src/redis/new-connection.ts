/** Probes Redis on a new connection. */
import { once } from 'node:events'
import { within } from '../within.js'
import { connectRedis } from './connect.js'

const TIMEOUT_MS = 3_000

/**
 * Whether Redis answers on a new connection. Asks for a key of the queue: in a Cluster, a PING could be answered by another node than
 * the queue's. Never rejects.
 */
export async function redisAnswersNewConnection({
  redisUrl,
  key,
}: {
  redisUrl: string
  key: string
}): Promise<boolean> {
  const redis = connectRedis(redisUrl, 'producer')
  try {
    await once(redis, 'ready', { signal: AbortSignal.timeout(TIMEOUT_MS) })
    return (await within(TIMEOUT_MS, redis.exists(key))) !== undefined
  } catch {
    return false
  } finally {
    // Without a listener, ioredis prints later errors.
    redis.on('error', () => undefined)
    redis.disconnect()
  }
}
