/** Delivering a verdict: stored until its ticket could no longer be redeemed, announced to whoever waits. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { RedisClock } from './clock.js'
import type { Logger } from './log.js'
import { encodeReply, type JobRef, REPLY, redeemerKey, replyChannel, verdictKey } from './protocol/reply.js'
import type { RedisConnection } from './redis.js'

const RETRY_MS = 200

export type Deliver = (job: JobRef & { replyTo: string }, sealed: string) => Promise<void>

/**
 * A delivery that Redis refuses, being full or read-only, is tried again until the job's deadline: the slot stays taken, but
 * the hash is not computed a second time. While Redis is away the connection itself waits.
 */
export function createDelivery(options: {
  redis: RedisConnection
  prefix: string
  clock: RedisClock
  log: Logger
}): Deliver {
  const { redis, prefix, clock, log } = options
  return async ({ id, deadline, replyTo }, sealed) => {
    const keys = [verdictKey(prefix, id), redeemerKey(prefix, id)]
    for (let attempt = 1; ; attempt += 1) {
      const keepMs = Math.max(1, deadline - clock.now())
      try {
        await redis.eval(
          REPLY,
          keys.length,
          ...keys,
          sealed,
          keepMs,
          replyChannel(prefix, ''),
          replyTo,
          encodeReply(id, sealed),
        )
        return
      } catch (error) {
        if (clock.now() >= deadline) throw error
        if (attempt === 1) log.warn({ jobId: id, err: error }, 'verdict not taken by Redis, trying again')
        await sleep(RETRY_MS)
      }
    }
  }
}
