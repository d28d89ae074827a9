/** A worker's parts for one Redis server. */
import { SoundQueue } from '@spillway/queue/jobs/malformed-jobs'
import { RedisClock } from '@spillway/queue/redis/clock'
import { askOnNewConnection, connectRedis, type RedisConnection } from '@spillway/queue/redis/connect'
import { type Eviction, EvictionWatch } from '@spillway/queue/redis/eviction'
import type { RedisServer } from '@spillway/queue/redis/servers'
import { RedisWatch } from '@spillway/queue/redis/watch'
import { capacityKey } from '@spillway/queue/wire/capacity'
import { CapacityPublisher, type CapacityPublisherOptions } from './capacity-publisher.js'
import { Consumer, type ConsumerOptions } from './consumer.js'
import { Delivery } from './deliver.js'
import { Liveness } from './liveness.js'
import type { SlotShare } from './slots.js'

/** What all queues of a worker share. */
type WorkerQueueOptions = Omit<
  ConsumerOptions & CapacityPublisherOptions,
  'redis' | 'clock' | 'watch' | 'delivery' | 'liveness' | 'capacity' | 'share' | 'asking' | 'published'
> & { stuckAfterMs: number }

/** Connects, and publishes the capacity at once. Takes no job before its consumer runs. */
export class WorkerQueue {
  readonly address: string
  readonly redis: RedisConnection
  readonly eviction: () => Eviction | undefined
  readonly liveness: Liveness
  readonly capacity: CapacityPublisher
  readonly delivery: Delivery
  readonly consumer: Consumer

  constructor({ url, currentUrl, address }: RedisServer, share: SlotShare, options: WorkerQueueOptions) {
    const { prefix, log, metrics, stuckAfterMs } = options
    const redis = connectRedis(url, 'consumer', currentUrl)
    this.address = address
    this.redis = redis
    const watch = new RedisWatch(log)
    watch.watch(redis, 'queue')
    this.eviction = new EvictionWatch(redis, address, log).state
    const clock = new RedisClock()
    this.liveness = new Liveness({
      limit: () => share.limit(),
      stuckAfterMs,
      isConnected: () => this.isConnected(),
      // A key of the queue: in a Cluster, another node than the queue's could answer a PING.
      redisAnswersNewConnection: async () =>
        (await askOnNewConnection(currentUrl(), (asked) => asked.exists(capacityKey(prefix)))) !== undefined,
    })
    this.capacity = new CapacityPublisher({
      ...{ ...options, redis, clock },
      asking: () => this.consumer.asking(),
      published: ({ waiting, abandoned, active }) => {
        this.consumer.queueRead(active)
        this.liveness.redisAnswered(waiting)
        share.queueRead(waiting)
        if (abandoned === 0) return
        metrics.tickets.inc({ event: 'abandoned' }, abandoned)
        log.info({ tickets: abandoned, outcome: 'abandoned' }, 'tickets dropped')
      },
    })
    const sound = new SoundQueue({ redis, prefix, log })
    redis.once('end', () => sound.close())
    this.delivery = new Delivery({ redis, prefix, clock, log })
    const { liveness, capacity, delivery } = this
    this.consumer = new Consumer({ ...options, redis, clock, watch, delivery, liveness, capacity, share })
  }

  isConnected(): boolean {
    return this.redis.status === 'ready'
  }

  /** Whether its Redis server is connected and took the last write. */
  takesWrites(): boolean {
    return this.isConnected() && this.capacity.isAccepted()
  }
}
