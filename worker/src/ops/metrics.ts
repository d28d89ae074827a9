/** The metrics of a worker, with Prometheus's naming. No label's values grow with users. */

import { Metrics } from '@spillway/common/metrics'
import type { Eviction } from '@spillway/queue/redis/eviction'
import { jobNames } from '@spillway/queue/wire/job'
import { algorithmNames } from '../hashing/methods/recipe.js'
import type { Policy } from '../hashing/policy.js'

/**
 * Outcomes of jobs. `hashed` also stands for every completed verify: only the gateway learns
 * whether the password matched. `skipped`: unhashed, because its client was away. `undelivered`:
 * Redis refused to store the result, which was announced anyway.
 */
const outcomes = [
  ...(['hashed', 'skipped', 'forged', 'unsupported_hash'] as const),
  ...(['unsupported_password', 'hashing_failed', 'undelivered'] as const),
] as const

const QUEUE_WAIT_BUCKETS_S = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]
const SERVICE_BUCKETS_S = [0.0025, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12]

interface WorkerState {
  slots: number
  policy: Policy
  /** The implementation in use for each algorithm, by its package. */
  engines: Readonly<Record<string, string>>
  busySlots(): number
  /** How long this worker has made no progress although it could have, in milliseconds. */
  stuckMs(): number
  takesWrites(): boolean
  eviction(): Eviction | undefined
}

export class WorkerMetrics extends Metrics {
  readonly jobs = this.counter('spillway_jobs_total', 'Jobs that ended here, by name and outcome', {
    ...{ job: jobNames, outcome: outcomes },
  })
  readonly queueWait = this.histogram(
    'spillway_queue_wait_seconds',
    'Time from adding a job to its start',
    QUEUE_WAIT_BUCKETS_S,
    { job: jobNames },
  )
  readonly service = this.histogram(
    'spillway_service_seconds',
    'Time from taking a job to its hash, by the algorithm of the hash that was made or verified',
    SERVICE_BUCKETS_S,
    { job: [], algorithm: [] },
  )
  readonly rehashes = this.counter(
    'spillway_rehashes_total',
    'Stored hashes below the policy that were replaced at a login, by their algorithm',
    { from: algorithmNames },
  )
  readonly sealFailures = this.counter(
    'spillway_seal_failures_total',
    'Sealed values that did not open: forged, swapped, damaged, or of an unknown key',
    { purpose: ['request'] },
  )
  readonly stalled = this.counter(
    'spillway_jobs_stalled_total',
    'Jobs taken over from a worker that stopped renewing their lock',
  )
  readonly locksLost = this.counter(
    'spillway_job_locks_lost_total',
    'Failed renewals of the lock of a job in hand: the worker got no processor for seconds, or Redis lost the lock',
  )
  readonly requeued = this.counter(
    'spillway_jobs_requeued_total',
    'Jobs requeued: unfinished by a stopping worker, or active for a worker that did not have them in hand',
  )

  constructor() {
    super()
    this.jobs.inc({ job: 'unknown', outcome: 'forged' }, 0)
  }

  /** Adds gauges of a worker's state, read at each scrape. */
  exposeState(state: WorkerState): void {
    const { slots, policy, engines, busySlots, stuckMs } = state
    this.gauge('spillway_worker_slots', 'Hashing threads of this worker', () => slots)
    this.gauge('spillway_worker_slots_busy', 'Slots that hold a job now', busySlots)
    this.gauge(
      'spillway_worker_stuck_seconds',
      'For how long jobs have waited that could have been taken, without any progress',
      () => stuckMs() / 1_000,
    )
    this.exposeRedis(state)
    const { hashes } = policy
    const policyLabels =
      hashes.algorithm === 'bcrypt'
        ? { algorithm: hashes.algorithm, cost: hashes.cost }
        : {
            algorithm: hashes.algorithm,
            memory_kib: hashes.memoryKib,
            time: hashes.time,
            parallelism: hashes.parallelism,
          }
    this.info(
      'spillway_password_policy_info',
      'Always 1; its labels are the algorithm and cost of new hashes',
      Object.keys(policyLabels),
      () => [policyLabels],
    )
    this.info(
      'spillway_hash_engine_info',
      'Always 1; its labels are an algorithm and the implementation of it that is in use',
      ['algorithm', 'engine'],
      () => Object.entries(engines).map(([algorithm, engine]) => ({ algorithm, engine })),
    )
  }
}
