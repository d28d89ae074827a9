/** What a worker has for one Redis server of several: a connection, its clock, the consumer of its queue, and what is published there. */

import type { Logger } from '@spillway/common/log'
import type { Tracing } from '@spillway/common/tracing-sdk'
import { SoundQueue } from '@spillway/queue/jobs/sound'
import { createRedisClock } from '@spillway/queue/redis/clock'
import { askOnNewConnection, connectRedis, type RedisConnection } from '@spillway/queue/redis/connect'
import { type Eviction, watchEviction } from '@spillway/queue/redis/eviction'
import type { RedisServer } from '@spillway/queue/redis/servers'
import { watchRedis } from '@spillway/queue/redis/watch'
import { capacityKey } from '@spillway/queue/wire/capacity'
import type { Keyring } from '@spillway/queue/wire/seal'
import type { CapacityEstimate } from '../hashing/capacity-estimate.js'
import type { Hasher } from '../hashing/index.js'
import type { WorkerMetrics } from '../ops/metrics.js'
import { type CapacityPublisher, publishCapacity } from './capacity-publisher.js'
import { type Consumer, createConsumer } from './consumer.js'
import { Delivery } from './deliver.js'
import { Liveness } from './liveness.js'
import type { OldSystem } from './old-system.js'
import type { SlotShare } from './slots.js'

export interface WorkerQueue {
  address: string
  redis: RedisConnection
  isConnected(): boolean
  eviction(): Eviction | undefined
  liveness: Liveness
  capacity: CapacityPublisher
  delivery: Delivery
  consumer: Consumer
}

export interface WorkerQueueOptions {
  prefix: string
  keyring: Keyring
  hasher: Hasher
  oldSystem: OldSystem | undefined
  metrics: WorkerMetrics
  tracing: Tracing | undefined
  log: Logger
  workerId: string
  name: string
  slots: number
  fallback: boolean
  stuckAfterMs: number
  estimate: CapacityEstimate
  /** Of all queues together. */
  inHand(): number
  busySlots(): number
}

/** Connects, and publishes the capacity at once. Takes no job before its consumer runs. */
export function openWorkerQueue(
  { url, address }: RedisServer,
  share: SlotShare,
  options: WorkerQueueOptions,
): WorkerQueue {
  const { prefix, log, stuckAfterMs } = options
  const redis = connectRedis(url, 'consumer')
  const watch = watchRedis(log)
  watch.watch(redis, 'queue')
  const eviction = watchEviction({ redis, address, log })
  const clock = createRedisClock()
  const isConnected = () => redis.status === 'ready'
  const liveness = new Liveness({
    limit: () => share.limit(),
    stuckAfterMs,
    isConnected,
    // A key of the queue: in a Cluster, another node than the queue's could answer a PING.
    redisAnswersNewConnection: async () =>
      (await askOnNewConnection(url, (asked) => asked.exists(capacityKey(prefix)))) !== undefined,
  })
  const capacity = publishCapacity({
    ...{ ...options, redis, clock },
    asking: () => consumer.asking(),
    published({ waiting, abandoned, active }) {
      consumer.queueRead(active)
      liveness.redisAnswered(waiting)
      share.queueRead(waiting)
      if (abandoned === 0) return
      options.metrics.tickets.inc({ event: 'abandoned' }, abandoned)
      log.info({ tickets: abandoned, outcome: 'abandoned' }, 'tickets dropped')
    },
  })
  const sound = new SoundQueue({ redis, prefix, log })
  redis.once('end', () => sound.close())
  const delivery = new Delivery({ redis, prefix, clock, log })
  const consumer = createConsumer({ ...options, redis, clock, watch, delivery, liveness, capacity, share })
  return { address, redis, isConnected, eviction: eviction.state, liveness, capacity, delivery, consumer }
}
