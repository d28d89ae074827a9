/** Whether Redis answers a new connection. */
import { once } from 'node:events'
import { within } from '../within.js'
import { connectRedis } from './connect.js'

const PATIENCE_MS = 3_000

/**
 * Connects, asks for a key of the queue, and hangs up again: in Cluster any node would answer a PING, though the queue's be frozen.
 * Never rejects.
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
    await once(redis, 'ready', { signal: AbortSignal.timeout(PATIENCE_MS) })
    return (await within(PATIENCE_MS, redis.exists(key))) !== undefined
  } catch {
    return false
  } finally {
    // What it still has to say is of no interest.
    redis.on('error', () => undefined)
    redis.disconnect()
  }
}
