/** What a worker counts, in Prometheus's names and units (seconds). No label grows with users. */
import { Counter, collectDefaultMetrics, Histogram, Registry } from 'prom-client'

export interface WorkerMetrics {
  registry: Registry
  /** Jobs by name and outcome: hashed, expired, forged, unsupported_hash, hashing_failed. */
  jobs: Counter<'job' | 'outcome'>
  queueWait: Histogram<'job'>
  service: Histogram<'job'>
}

const BUCKETS_S = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

export function createWorkerMetrics(): WorkerMetrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const registers = [registry]
  return {
    registry,
    jobs: new Counter({
      name: 'spillway_jobs_total',
      help: 'Jobs finished, by name and outcome',
      labelNames: ['job', 'outcome'],
      registers,
    }),
    queueWait: new Histogram({
      name: 'spillway_queue_wait_seconds',
      help: 'Time from enqueuing a job to its start',
      labelNames: ['job'],
      buckets: BUCKETS_S,
      registers,
    }),
    service: new Histogram({
      name: 'spillway_service_seconds',
      help: 'Time of the hashing alone',
      labelNames: ['job'],
      buckets: BUCKETS_S,
      registers,
    }),
  }
}
