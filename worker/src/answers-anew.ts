/** Whether Redis is there for others: asked over a connection that has never been used. */
import { once } from 'node:events'
import { connectRedis } from './redis.js'

const PATIENCE_MS = 3_000

/** Connects, asks, and hangs up again. Never rejects. */
export async function answersAnew(redisUrl: string): Promise<boolean> {
  const redis = connectRedis(redisUrl, 'producer')
  try {
    await once(redis, 'ready', { signal: AbortSignal.timeout(PATIENCE_MS) })
    await redis.ping()
    return true
  } catch {
    return false
  } finally {
    // What it still has to say is of no interest.
    redis.on('error', () => undefined)
    redis.disconnect()
  }
}
