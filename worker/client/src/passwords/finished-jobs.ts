/** Jobs that all workers have ended, put together from what each says of itself. */
import { finishedBy, type WorkerCapacity } from '../protocol/capacity.js'

export interface FinishedJobs {
  /** These workers are alive now. */
  heard(workers: ReadonlyMap<string, WorkerCapacity>): void
  /** Since this gateway started: it only grows. */
  count(): number
}

/** What a worker did before it was first heard of is not counted: it may be the work of days. */
export function countFinishedJobs(): FinishedJobs {
  let total = 0
  let before = new Map<string, number>()
  return {
    heard(workers) {
      const now = new Map([...workers].map(([id, capacity]) => [id, finishedBy(capacity)]))
      for (const [id, count] of now) total += Math.max(0, count - (before.get(id) ?? count))
      before = now
    },
    count: () => total,
  }
}
