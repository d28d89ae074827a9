/** Gauges of the queue, its workers and the gateway's own state, read at each scrape. */

import { exposeEviction } from '@spillway/common/registry'
import type { PoolUse } from '@spillway/prisma'
import type { QueueReporter } from '@spillway/queue/jobs/report'
import type { PasswordClient, RedisOfQueue } from '@spillway/queue/queue-client'
import { Gauge, type Registry } from 'prom-client'
import type { LoadShedder } from '../plugins/load-shedding/load-shedder.js'

interface GatewayState {
  passwords: Pick<PasswordClient, 'load' | 'predictedWaitMs' | 'isReady' | 'redis'>
  reporter: QueueReporter
  shedder: Pick<LoadShedder, 'inHand' | 'delayMs'>
  poolUse(): PoolUse
  /** Whether the fallback worker runs. */
  isFallingBack(): boolean
}

/** What a gauge reads: one value, or a value for each name of its label; undefined if unknown. */
type Reading = number | undefined | Readonly<Record<string, number>>

/** Adds the gauges to a registry. Gauges that need Redis have no value while it does not answer. */
export function exposeGatewayState(registry: Registry, state: GatewayState): void {
  const { passwords, reporter, shedder, poolUse, isFallingBack } = state
  const report = () => reporter.read().catch(() => undefined)

  function gauge(name: string, help: string, read: () => Reading | Promise<Reading>, label = 'state'): void {
    new Gauge({
      name,
      help,
      labelNames: [label],
      registers: [registry],
      async collect() {
        const values = await read()
        this.reset()
        if (typeof values === 'number') this.set(values)
        else for (const [named, value] of Object.entries(values ?? {})) this.set({ [label]: named }, value)
      },
    })
  }

  /** A value for each Redis server, by its address. */
  const byRedis = (read: (redis: RedisOfQueue) => number) => () =>
    Object.fromEntries(passwords.redis.map((redis) => [redis.address, read(redis)]))

  gauge('spillway_workers', 'Workers that published their capacity of late', () => passwords.load().workers)
  gauge('spillway_slots', 'Hashing threads of all live workers', () => passwords.load().slots)
  gauge(
    'spillway_capacity_jobs_per_second',
    'Jobs a second that all live workers could finish together',
    () => passwords.load().jobsPerSecond,
  )
  gauge(
    'spillway_predicted_wait_seconds',
    'Time until all jobs that wait now, and one more, would be answered; +Inf when no worker is alive, or the queue is paused',
    // The wait of held jobs would never show an overload: admission keeps it at about a second.
    () => passwords.predictedWaitMs('deferred') / 1_000,
  )
  gauge('spillway_fallback_active', 'Whether this gateway hashes itself, for lack of workers', () =>
    Number(isFallingBack()),
  )
  gauge(
    'spillway_requests_in_hand',
    'Requests that this gateway works on itself; requests held for a worker do not count',
    () => shedder.inHand(),
  )
  gauge(
    'spillway_gateway_delay_seconds',
    'How long requests waited of late until this gateway began with them',
    () => shedder.delayMs() / 1_000,
  )
  gauge(
    'spillway_redis_connected',
    'Whether the connection to Redis is up; with several, whether each can be used, by its address',
    () =>
      passwords.redis.length === 1 ? Number(passwords.isReady()) : byRedis(({ isUsable }) => Number(isUsable()))(),
    'redis',
  )
  gauge(
    'spillway_line_serving',
    'The number whose turn it is, by the address of its Redis server',
    byRedis(({ line }) => line().serving),
    'redis',
  )
  gauge(
    'spillway_line_last',
    'The last number that was given out, by the address of its Redis server',
    byRedis(({ line }) => line().last),
    'redis',
  )
  exposeEviction(registry, () => passwords.redis)
  gauge(
    'spillway_database_connections',
    'Connections to PostgreSQL by use; waiting are queries without a connection yet',
    () => ({ ...poolUse() }),
  )
  gauge(
    'spillway_queue_jobs',
    'Jobs in the queue, by state; finished jobs while they are kept',
    async () => (await report())?.jobs,
  )
  gauge(
    'spillway_oldest_job_age_seconds',
    'How long the job that is next has waited, by state; 0 when none waits',
    async () => {
      const ages = Object.entries((await report())?.oldestMs ?? {})
      return Object.fromEntries(ages.map(([lane, ms]) => [lane, ms / 1_000]))
    },
  )
  gauge('spillway_queue_paused', 'Whether operators have paused the queue', async () => {
    const paused = (await report())?.paused
    return paused === undefined ? undefined : Number(paused)
  })
}
