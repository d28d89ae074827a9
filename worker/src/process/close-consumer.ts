/** Closes a consumer of BullMQ's, also while Redis is away. */
import type { RedisConnection } from '@spillway/client/redis/connect'
import type { Worker } from 'bullmq'

/**
 * Takes no more jobs, and resolves when those in hand are finished. While Redis is away an idle consumer has nothing to wait for: BullMQ would
 * wait for its read, which is answered when Redis is back.
 */
export async function closeConsumer(
  worker: Pick<Worker, 'close'>,
  { redis, isIdle }: { redis: Pick<RedisConnection, 'status'>; isIdle: boolean },
): Promise<void> {
  await worker.close(isIdle && redis.status !== 'ready')
}
