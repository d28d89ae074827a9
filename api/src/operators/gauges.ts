/** Gauges of the queue, its workers and the gateway's own state, read at each scrape. */

import type { Metrics } from '@spillway/common/metrics'
import type { PoolUse } from '@spillway/prisma'
import type { QueueReporter } from '@spillway/queue/jobs/report'
import type { PasswordClient, RedisOfQueue } from '@spillway/queue/queue-client'
import type { LoadShedder } from '../plugins/load-shedding/load-shedder.js'

interface GatewayState {
  passwords: Pick<PasswordClient, 'load' | 'predictedWaitMs' | 'redis'>
  reporter: QueueReporter
  shedder: Pick<LoadShedder, 'inHand' | 'delayMs'>
  poolUse(): PoolUse
  /** Whether the fallback worker runs. */
  isFallingBack(): boolean
}

/** Adds the gauges. Those that need Redis have no value while it does not answer. */
export function exposeGatewayState(metrics: Metrics, state: GatewayState): void {
  const { passwords, reporter, shedder, poolUse, isFallingBack } = state
  const report = () => reporter.read().catch(() => undefined)

  /** A value for each Redis server, by its address. */
  const byRedis = (read: (redis: RedisOfQueue) => number) => () =>
    Object.fromEntries(passwords.redis.map((redis) => [redis.address, read(redis)]))

  metrics.gauge('spillway_workers', 'Workers that published their capacity of late', () => passwords.load().workers)
  metrics.gauge('spillway_slots', 'Hashing threads of all live workers', () => passwords.load().slots)
  metrics.gauge(
    'spillway_capacity_jobs_per_second',
    'Jobs a second that all live workers could finish together',
    () => passwords.load().jobsPerSecond,
  )
  metrics.gauge(
    'spillway_predicted_wait_seconds',
    'Time until all jobs that wait now, and one more, would be answered; +Inf when no worker is alive, or the queue is paused',
    // The wait of held jobs would never show an overload: admission keeps it at about a second.
    () => passwords.predictedWaitMs('deferred') / 1_000,
  )
  metrics.gauge('spillway_fallback_active', 'Whether this gateway hashes itself, for lack of workers', () =>
    Number(isFallingBack()),
  )
  metrics.gauge(
    'spillway_requests_in_hand',
    'Requests that this gateway works on itself; requests held for a worker do not count',
    () => shedder.inHand(),
  )
  metrics.gauge(
    'spillway_gateway_delay_seconds',
    'How long requests waited of late until this gateway began with them',
    () => shedder.delayMs() / 1_000,
  )
  metrics.exposeRedis(() =>
    passwords.redis.map(({ isUsable, takesWrites, ...redis }) => ({
      ...redis,
      isConnected: async () => isUsable() && (await takesWrites()),
    })),
  )
  metrics.gauge(
    'spillway_line_serving',
    'The number whose turn it is, by the address of its Redis server',
    byRedis(({ line }) => line().serving),
    'redis',
  )
  metrics.gauge(
    'spillway_line_last',
    'The last number that was given out, by the address of its Redis server',
    byRedis(({ line }) => line().last),
    'redis',
  )
  metrics.gauge(
    'spillway_database_connections',
    'Connections to PostgreSQL by use; waiting are queries without a connection yet',
    () => ({ ...poolUse() }),
  )
  metrics.gauge(
    'spillway_queue_jobs',
    'Jobs in the queue, by state; finished jobs while they are kept',
    async () => (await report())?.jobs,
  )
  metrics.gauge(
    'spillway_oldest_job_age_seconds',
    'How long the job that is next has waited, by state; 0 when none waits',
    async () => {
      const ages = Object.entries((await report())?.oldestMs ?? {})
      return Object.fromEntries(ages.map(([lane, ms]) => [lane, ms / 1_000]))
    },
  )
  metrics.gauge('spillway_queue_paused', 'Whether operators have paused the queue', async () => {
    const paused = (await report())?.paused
    return paused === undefined ? undefined : Number(paused)
  })
}
