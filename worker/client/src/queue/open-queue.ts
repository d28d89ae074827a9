/** Opens a queue of BullMQ's on an existing connection. */
import { type Job, Queue, type Telemetry } from 'bullmq'
import { QUEUE_NAME } from '../protocol/job.js'
import type { RedisConnection } from '../redis/connect.js'
import type { RedisWatch } from '../redis/watch.js'

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

/** The job; undefined when there is no such job; `malformed` when BullMQ cannot parse it. Throws when Redis does not answer. */
export async function readJob(queue: Queue, id: string): Promise<Job | 'malformed' | undefined> {
  try {
    return await queue.getJob(id)
  } catch (error) {
    // Invalid JSON, JSON of another type, or a key that is no hash. Other errors are not caused by the job.
    const isOfContents = error instanceof SyntaxError || error instanceof TypeError
    if (isOfContents || (error instanceof Error && error.message.startsWith('WRONGTYPE'))) return 'malformed'
    throw error
  }
}
