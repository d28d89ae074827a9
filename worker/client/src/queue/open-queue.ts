/** Opens a queue of BullMQ's on an existing connection. */
import { Queue, type Telemetry } from 'bullmq'
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
