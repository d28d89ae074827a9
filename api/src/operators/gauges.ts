/** Gauges of the queue, its workers and the gateway's own state, read at each scrape. */
import type { QueueReporter } from '@spillway/client/queue/report'
import type { PasswordClient } from '@spillway/client/queue-client'
import type { PoolUse } from '@spillway/prisma'
import { exposeEviction } from '@spillway/worker/registry'
import { Gauge, type Registry } from 'prom-client'
import type { LoadShedder } from '../load-shedding/load-shedder.js'

export interface GatewayState {
  passwords: Pick<PasswordClient, 'load' | 'predictedWaitMs' | 'isReady' | 'redis'>
  reporter: QueueReporter
  shedder: Pick<LoadShedder, 'inHand' | 'delayMs'>
  poolUse(): PoolUse
  /** Whether the fallback worker runs. */
  isFallingBack(): boolean
}

/** Adds the gauges to a registry. While Redis does not answer, gauges that need it have no value. */
export function exposeGatewayState(registry: Registry, state: GatewayState): void {
  const { passwords, reporter, shedder, poolUse, isFallingBack } = state
  const registers = [registry]
  const gauges: [name: string, help: string, read: () => number][] = [
    ['spillway_workers', 'Workers that published their capacity of late', () => passwords.load().workers],
    ['spillway_slots', 'Hashing threads of all live workers', () => passwords.load().slots],
    [
      'spillway_capacity_jobs_per_second',
      'Jobs a second that all live workers could finish together',
      () => passwords.load().jobsPerSecond,
    ],
    [
      'spillway_predicted_wait_seconds',
      'Time until all jobs that wait now, and one more, would be answered; +Inf when no worker is alive, or the queue is paused',
      // The wait of held jobs would never show an overload: admission keeps it at about a second.
      () => passwords.predictedWaitMs('deferred') / 1_000,
    ],
    [
      'spillway_fallback_active',
      'Whether this gateway hashes itself, for lack of workers',
      () => Number(isFallingBack()),
    ],
    [
      'spillway_requests_in_hand',
      'Requests that this gateway works on itself; requests held for a worker do not count',
      () => shedder.inHand(),
    ],
    [
      'spillway_gateway_delay_seconds',
      'How long requests waited of late until this gateway began with them',
      () => shedder.delayMs() / 1_000,
    ],
  ]
  for (const [name, help, read] of gauges) {
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read())
      },
    })
  }
  new Gauge({
    name: 'spillway_redis_connected',
    help: 'Whether the connection to Redis is up; with several, whether each can be used, by its address',
    labelNames: ['redis'],
    registers,
    collect() {
      const { redis } = passwords
      if (redis.length === 1) this.set(Number(passwords.isReady()))
      else for (const { address, isUsable } of redis) this.set({ redis: address }, Number(isUsable()))
    },
  })
  const lineGauges = [
    ['spillway_line_serving', 'The number whose turn it is, by the address of its Redis server', 'serving'],
    ['spillway_line_last', 'The last number that was given out, by the address of its Redis server', 'last'],
  ] as const
  for (const [name, help, which] of lineGauges) {
    new Gauge({
      name,
      help,
      labelNames: ['redis'],
      registers,
      collect() {
        for (const { address, line } of passwords.redis) this.set({ redis: address }, line()[which])
      },
    })
  }
  exposeEviction(registry, () => passwords.redis)
  new Gauge({
    name: 'spillway_database_connections',
    help: 'Connections to PostgreSQL by use; waiting are queries without a connection yet',
    labelNames: ['state'],
    registers,
    collect() {
      for (const [state, count] of Object.entries(poolUse())) this.set({ state }, count)
    },
  })
  const report = () => reporter.read().catch(() => undefined)
  new Gauge({
    name: 'spillway_queue_jobs',
    help: 'Jobs in the queue, by state; finished jobs while they are kept',
    labelNames: ['state'],
    registers,
    async collect() {
      this.reset()
      for (const [state, count] of Object.entries((await report())?.jobs ?? {})) this.set({ state }, count)
    },
  })
  new Gauge({
    name: 'spillway_oldest_job_age_seconds',
    help: 'How long the job that is next has waited, by state; 0 when none waits',
    labelNames: ['state'],
    registers,
    async collect() {
      this.reset()
      for (const [state, ms] of Object.entries((await report())?.oldestMs ?? {})) this.set({ state }, ms / 1_000)
    },
  })
  new Gauge({
    name: 'spillway_queue_paused',
    help: 'Whether operators have paused the queue',
    registers,
    async collect() {
      const paused = (await report())?.paused
      if (paused === undefined) this.remove()
      else this.set(Number(paused))
    },
  })
}
