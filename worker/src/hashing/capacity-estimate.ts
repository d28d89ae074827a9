/**
 * Estimates what a job takes from the jobs that this process has done: the time of a slot under load, by which capacity is told, and the time
 * until its verdict. They differ when several jobs are hashed together: five that take 80 ms together take 16 ms of the slot each.
 */
import type { Hasher } from './index.js'
import type { NativeEngine } from './native.js'

/** The weight of one job in the moving averages, which thus follow a change within about ten jobs. The first jobs have more: 1, 1/2, 1/3, 1/4. */
const JOB_WEIGHT = 0.2

export interface CapacityEstimate {
  /** Counts a job; `latencyMs` is its time from taken to hashed. */
  finished(latencyMs: number): void
  /** The time of a slot for each job, in milliseconds: as under load, also when there is none. */
  serviceMs(): number
  /** The last result of serviceMs(). Calling that within a batch would attribute the time of the whole batch to its first job. */
  lastServiceMs(): number
  /** The time from taking a job to its hash, in milliseconds. */
  latencyMs(): number
}

export interface CapacityEstimateOptions {
  /** Until a job has been done. */
  first: { serviceMs: number; latencyMs: number }
  /** The time of the hashing threads so far, in milliseconds, counted as in full batches. */
  threadMs(): number
}

export function createCapacityEstimate({ first, threadMs }: CapacityEstimateOptions): CapacityEstimate {
  let { serviceMs, latencyMs } = first
  let jobs = 0
  /** Of them, those that `serviceMs` does not include yet. */
  let added = 0
  let readAtMs = threadMs()

  return {
    finished(jobLatencyMs) {
      jobs += 1
      added += 1
      latencyMs += (jobLatencyMs - latencyMs) * Math.max(JOB_WEIGHT, 1 / jobs)
    },
    serviceMs() {
      if (added > 0) {
        const spentMs = threadMs() - readAtMs
        serviceMs += (spentMs / added - serviceMs) * Math.max(1 - (1 - JOB_WEIGHT) ** added, added / jobs)
        readAtMs += spentMs
        added = 0
      }
      return serviceMs
    },
    lastServiceMs: () => serviceMs,
    latencyMs: () => latencyMs,
  }
}

type MeasuredHasher = Pick<Hasher, 'decoy' | 'threadMs'> & { native: Pick<NativeEngine, 'forgetCalls'> | undefined }

/**
 * Begins with the times of one verify on this machine. The first one is not counted, because it includes loading. How many of them would be
 * hashed together says nothing of the jobs to come.
 */
export async function measureCapacity({ decoy, threadMs, native }: MeasuredHasher): Promise<CapacityEstimate> {
  await decoy('warm-up')
  const [startedAt, spentBefore] = [performance.now(), threadMs()]
  await decoy('measured')
  const first = { serviceMs: threadMs() - spentBefore, latencyMs: performance.now() - startedAt }
  native?.forgetCalls()
  return createCapacityEstimate({ first, threadMs })
}
