/** Opens a queue of BullMQ's on an existing connection. */
import { type Job, Queue, type Telemetry, type Worker } from 'bullmq'
import type { RedisConnection } from '../redis/connect.js'
import type { RedisWatch } from '../redis/watch.js'
import { QUEUE_NAME } from '../wire/job.js'

/** Sends no command by itself: Redis may be unreachable when a process starts. */
export function openQueue(options: {
  redis: RedisConnection
  prefix: string
  /** [the queue of password jobs] */
  name?: string
  watch: RedisWatch
  telemetry?: Telemetry | undefined
}): Queue {
  const { redis, prefix, name = QUEUE_NAME, watch, telemetry } = options
  const queue = new Queue(name, {
    connection: redis,
    prefix,
    skipWaitingForReady: true,
    skipVersionCheck: true,
    skipMetasUpdate: true,
    ...(telemetry ? { telemetry } : {}),
  })
  queue.on('error', (error) => watch.queueFailed(error))
  return queue
}

/** The job; `malformed` when BullMQ cannot parse it. Throws when Redis does not answer. */
export async function readJob(queue: Pick<Queue, 'getJob'>, id: string): Promise<Job | 'malformed' | undefined> {
  try {
    return await queue.getJob(id)
  } catch (error) {
    // Invalid JSON, JSON of another type, or a key that is no hash. Other errors are not caused by
    // the job.
    const isOfContents = error instanceof SyntaxError || error instanceof TypeError
    if (isOfContents || (error instanceof Error && error.message.startsWith('WRONGTYPE'))) return 'malformed'
    throw error
  }
}

/**
 * Takes no more jobs, and resolves when the jobs in hand are finished. While Redis is away an idle
 * consumer has nothing to wait for: BullMQ would wait for its read, which is answered when Redis is
 * back.
 */
export async function closeConsumer(
  worker: Pick<Worker, 'close'>,
  { redis, isIdle }: { redis: Pick<RedisConnection, 'status'>; isIdle: boolean },
): Promise<void> {
  await worker.close(isIdle && redis.status !== 'ready')
}
