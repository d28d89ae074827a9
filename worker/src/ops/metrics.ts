/** The metrics of a worker, with Prometheus's naming and units (seconds). No label's values grow with users. */

import { createRegistry } from '@spillway/common/registry'
import { jobNames } from '@spillway/queue/wire/job'
import { Counter, Histogram, type Registry } from 'prom-client'
import { algorithmNames } from '../hashing/algorithm.js'

/**
 * Outcomes of jobs. `hashed` also stands for every completed verify: only the gateway learns whether the password matched.
 * `unavailable` is a job that was set aside because the old system gave no verdict. `undelivered` is a verdict that Redis refused until its deadline.
 */
const outcomes = [
  ...(['hashed', 'expired', 'forged', 'unsupported_hash'] as const),
  ...(['unsupported_password', 'hashing_failed', 'unavailable', 'undelivered'] as const),
] as const

export interface WorkerMetrics {
  registry: Registry
  jobs: Counter<'job' | 'outcome'>
  queueWait: Histogram<'job'>
  service: Histogram<'job' | 'algorithm'>
  rehashes: Counter<'from'>
  sealFailures: Counter<'purpose'>
  /** What the old system answered: yes, no, or nothing. */
  oldSystem: Counter<'answer'>
  /** Jobs that this worker took over from a worker that stopped renewing their locks. */
  stalled: Counter
  /** Jobs in hand whose lock this worker could not renew any more. */
  locksLost: Counter
  /** Jobs that this worker requeued: unfinished when it stopped, or orphaned by a lost reply. */
  requeued: Counter
  /** Tickets whose clients were absent: at their turn, and until their deadline. */
  tickets: Counter<'event'>
}

const QUEUE_WAIT_BUCKETS_S = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]
const SERVICE_BUCKETS_S = [0.0025, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12]

/** Creates a registry that includes Node's and the process's metrics. Foreseeable series start at 0. */
export function createWorkerMetrics(): WorkerMetrics {
  const registry = createRegistry()
  const registers = [registry]
  const metrics: WorkerMetrics = {
    registry,
    jobs: new Counter({
      name: 'spillway_jobs_total',
      help: 'Jobs that ended here, by name and outcome',
      labelNames: ['job', 'outcome'],
      registers,
    }),
    queueWait: new Histogram({
      name: 'spillway_queue_wait_seconds',
      help: 'Time from adding a job to its start',
      labelNames: ['job'],
      buckets: QUEUE_WAIT_BUCKETS_S,
      registers,
    }),
    service: new Histogram({
      name: 'spillway_service_seconds',
      help: 'Time from taking a job to its hash, by the algorithm of the hash that was made or verified',
      labelNames: ['job', 'algorithm'],
      buckets: SERVICE_BUCKETS_S,
      registers,
    }),
    rehashes: new Counter({
      name: 'spillway_rehashes_total',
      help: 'Stored hashes below the policy that were replaced at a login, by their algorithm',
      labelNames: ['from'],
      registers,
    }),
    oldSystem: new Counter({
      name: 'spillway_old_system_answers_total',
      help: 'Questions to the old system of LEGACY_VERIFY_URL, by its answer; unavailable where it gave no verdict in time',
      labelNames: ['answer'],
      registers,
    }),
    sealFailures: new Counter({
      name: 'spillway_seal_failures_total',
      help: 'Sealed values that did not open: forged, swapped, damaged, or of an unknown key',
      labelNames: ['purpose'],
      registers,
    }),
    stalled: new Counter({
      name: 'spillway_jobs_stalled_total',
      help: 'Jobs taken over from a worker that stopped renewing their lock',
      registers,
    }),
    locksLost: new Counter({
      name: 'spillway_job_locks_lost_total',
      help: 'Failed renewals of the lock of a job in hand: the worker got no processor for seconds, or Redis lost the lock',
      registers,
    }),
    requeued: new Counter({
      name: 'spillway_jobs_requeued_total',
      help: 'Jobs requeued: unfinished by a stopping worker, or orphaned by a lost reply of Redis',
      registers,
    }),
    tickets: new Counter({
      name: 'spillway_absent_tickets_total',
      help: 'Tickets whose clients were absent: passed over at their turn, abandoned until their deadline',
      labelNames: ['event'],
      registers,
    }),
  }
  for (const job of jobNames) {
    for (const outcome of outcomes) metrics.jobs.inc({ job, outcome }, 0)
    metrics.queueWait.zero({ job })
  }
  for (const event of ['passed_over', 'abandoned']) metrics.tickets.inc({ event }, 0)
  for (const from of algorithmNames) metrics.rehashes.inc({ from }, 0)
  metrics.jobs.inc({ job: 'unknown', outcome: 'forged' }, 0)
  for (const answer of ['yes', 'no', 'unavailable']) metrics.oldSystem.inc({ answer }, 0)
  metrics.sealFailures.inc({ purpose: 'request' }, 0)
  return metrics
}
