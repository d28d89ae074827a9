/** Delivers verdicts: stores each until its job's deadline and announces it to the waiting gateways. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '@spillway/common/log'
import { setAside } from '@spillway/queue/jobs/ticket'
import type { RedisClock } from '@spillway/queue/redis/clock'
import type { RedisConnection } from '@spillway/queue/redis/connect'
import { type JobRef, presentKey, REPLY, replyChannel, verdictKey } from '@spillway/queue/wire/reply'
import type { Result } from 'ioredis'

const RETRY_MS = 200

declare module 'ioredis' {
  interface RedisCommander<Context> {
    /** {@link REPLY} by EVALSHA: the source is sent once for each connection. */
    storeVerdict(...keysAndArguments: (string | number)[]): Result<unknown, Context>
  }
}

export interface Delivery {
  /**
   * Resolves when Redis has stored the verdict. While Redis refuses it (full, read-only), it is sent again, and this rejects at the job's
   * deadline. While Redis is unreachable, the connection queues the command.
   */
  deliver(job: JobRef & { replyTo: string }, sealed: string): Promise<void>
  /**
   * Sets a job aside whose verdict is `unavailable`, and announces that. Never rejects: where Redis does not do it, the job is taken again
   * when its lock has expired.
   */
  setAside(job: JobRef & { replyTo: string }, token: string, sealed: string): Promise<void>
  /** The stored verdict of a job, sealed; undefined where there is no verdict, or Redis does not say. Any client can have stored it. */
  stored(job: JobRef): Promise<string | undefined>
  /** Resolves when all deliveries have ended. */
  settled(): Promise<void>
}

export function createDelivery(options: {
  redis: RedisConnection
  prefix: string
  clock: RedisClock
  log: Logger
}): Delivery {
  const { redis, prefix, clock, log } = options
  const underway = new Set<Promise<void>>()
  redis.defineCommand('storeVerdict', { lua: REPLY, numberOfKeys: 2 })

  async function deliver({ id, deadline, replyTo }: JobRef & { replyTo: string }, sealed: string): Promise<void> {
    const keys = [verdictKey(prefix, id), presentKey(prefix, id)]
    for (let attempt = 1; ; attempt += 1) {
      const keepMs = Math.max(1, deadline - clock.now())
      try {
        await redis.storeVerdict(...keys, sealed, keepMs, replyChannel(prefix, ''), replyTo, id)
        return
      } catch (error) {
        if (clock.now() >= deadline) throw error
        if (attempt === 1) log.warn({ jobId: id, err: error }, 'verdict refused by Redis, retrying')
        await sleep(RETRY_MS)
      }
    }
  }

  return {
    deliver(job, sealed) {
      const delivered = deliver(job, sealed).finally(() => underway.delete(delivered))
      underway.add(delivered)
      return delivered
    },
    setAside: (job, token, sealed) => setAside(redis, prefix, job, token, sealed).catch(() => undefined),
    stored: async ({ id }) => (await redis.get(verdictKey(prefix, id)).catch(() => undefined)) ?? undefined,
    settled: async () => void (await Promise.allSettled(underway)),
  }
}
