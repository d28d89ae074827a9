/** Whether Redis is there for others: asked over a connection that has never been used. */
import { once } from 'node:events'
import { capacityKey } from '../protocol/capacity.js'
import { within } from '../within.js'
import { connectRedis } from './connect.js'

const PATIENCE_MS = 3_000

/**
 * Connects, asks for a key of this queue, and hangs up again: in Cluster any node would answer a PING, though ours be frozen.
 * Never rejects.
 */
export async function answersAnew({ redisUrl, prefix }: { redisUrl: string; prefix: string }): Promise<boolean> {
  const redis = connectRedis(redisUrl, 'producer')
  try {
    await once(redis, 'ready', { signal: AbortSignal.timeout(PATIENCE_MS) })
    return (await within(PATIENCE_MS, redis.exists(capacityKey(prefix)))) !== undefined
  } catch {
    return false
  } finally {
    // What it still has to say is of no interest.
    redis.on('error', () => undefined)
    redis.disconnect()
  }
}
