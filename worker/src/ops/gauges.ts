/** The state of a worker as gauges, read at each scrape. */

import { exposeEviction } from '@spillway/common/registry'
import type { Eviction } from '@spillway/queue/redis/eviction'
import { Gauge, type Registry } from 'prom-client'
import type { Policy } from '../hashing/policy.js'

export interface WorkerState {
  slots: number
  policy: Policy
  /** The implementation in use for each algorithm, by its package. */
  engines: Readonly<Record<string, string>>
  busySlots(): number
  /** How long this worker has made no progress although it could have, in milliseconds. */
  stuckMs(): number
  queues: readonly { address: string; isConnected(): boolean; eviction(): Eviction | undefined }[]
}

/** Adds the gauges to a registry. */
export function exposeWorkerState(registry: Registry, state: WorkerState): void {
  const { slots, policy, engines } = state
  const gauges: [name: string, help: string, read: () => number][] = [
    ['spillway_worker_slots', 'Hashing threads of this worker', () => slots],
    ['spillway_worker_slots_busy', 'Slots that hold a job now', state.busySlots],
    [
      'spillway_worker_stuck_seconds',
      'For how long jobs have waited that could have been taken, without any progress',
      () => state.stuckMs() / 1_000,
    ],
  ]
  for (const [name, help, read] of gauges) {
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        this.set(read())
      },
    })
  }
  new Gauge({
    name: 'spillway_redis_connected',
    help: 'Whether the connection to Redis is up; with several, whether each can be used, by its address',
    labelNames: ['redis'],
    registers: [registry],
    collect() {
      const several = state.queues.length > 1
      for (const { address, isConnected } of state.queues)
        this.set(several ? { redis: address } : {}, Number(isConnected()))
    },
  })
  exposeEviction(registry, () => state.queues)
  new Gauge({
    name: 'spillway_password_policy_info',
    help: 'Always 1; its labels are the algorithm and cost of new hashes',
    labelNames: ['algorithm', ...Object.keys(policy.cost)],
    registers: [registry],
  }).set({ algorithm: policy.algorithm, ...policy.cost }, 1)
  const engineInfo = new Gauge({
    name: 'spillway_hash_engine_info',
    help: 'Always 1; its labels are an algorithm and the implementation of it that is in use',
    labelNames: ['algorithm', 'engine'],
    registers: [registry],
  })
  for (const [algorithm, engine] of Object.entries(engines)) engineInfo.set({ algorithm, engine }, 1)
}
