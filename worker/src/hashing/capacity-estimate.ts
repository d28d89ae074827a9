/**
 * Estimates what a job takes of a slot, from the jobs that this process has done. Its cost is the processor time of its thread, which
 * neighbours on the same cores do not change. How much of a core the threads get has two estimates: over the last seconds for the next
 * seconds, and over half the life of a ticket for a ticket's life. In a burst everything else runs before it is over: a capacity measured
 * then says nothing about the time after it.
 *
 * The time until a verdict is another one: five jobs that are hashed together in 80 ms take 16 ms of the slot each.
 */
import type { Hasher } from './index.js'
import type { NativeEngine } from './native.js'
import type { ThreadTimes } from './threads.js'

/** The weight of one job in the moving averages, which thus follow a change within about ten jobs. The first jobs have more: 1, 1/2, 1/3, 1/4. */
const JOB_WEIGHT = 0.2
/** The memory of the two shares of a core, in milliseconds of busy slots: after it a measurement has a third of its weight. */
const SOON_MS = 2_000
const LINE_MS = 150_000
/** How long free cores count as seen when a worker starts, in milliseconds of busy slots. */
const PRIOR_MS = 5_000
/** How soon an idle worker forgets what share of a core it last got, in milliseconds. */
const IDLE_MEMORY_MS = 2_000
/** Less than a job that does nothing takes: a cost of 0 would be an infinite capacity. */
const LEAST_MS = 0.001
/** Of a core. What is less is taken for this. */
const LEAST_SHARE = 0.01
/** At its start a worker measures so many verifies, unless they take longer. */
const MEASURED = 4
const MEASURED_FOR_MS = 150
/** Before them one hash that takes a few milliseconds, whatever the policy asks for: a worker that starts in a spike is waited for. */
const WARM_UP = { algorithm: 'argon2id', memoryKib: 4_096, time: 1, parallelism: 1 } as const

export interface CapacityEstimate {
  /** Counts a job; `latencyMs` is its time from taken to hashed. One whose time was not foretold counts as if it had been, rightly. */
  finished(latencyMs: number, foretoldMs: number | undefined): void
  /** The time of a slot for each job in the next seconds, in milliseconds: as under load, also without load. */
  serviceMs(): number
  /** The same over the life of a ticket. Never less than on free cores. */
  lineMs(): number
  /** The last result of serviceMs(). Calling that within a batch would attribute the time of the whole batch to its first job. */
  lastServiceMs(): number
  /** The time from taking a job to its hash, in milliseconds. */
  latencyMs(): number
  /**
   * How long a job takes from now until its hash is made, with so many others in hand, in milliseconds. Admission predicts waits by the same
   * rule, from the queue.
   */
  answerMs(others: number, foretoldMs: number | undefined): number
  /** The mean of what was foretold for the jobs whose times are estimated here, in milliseconds of a processor. */
  foretoldMs(): number
}

export interface CapacityEstimateOptions {
  slots: number
  /** Until a job has been done: the processor time of a hash, what was foretold, and the time until it is made. */
  first: { costMs: number; latencyMs: number; foretoldMs: number }
  /** The time of the hashing threads so far, counted as in full batches. */
  times(): ThreadTimes
  now?(): number
}

export function createCapacityEstimate(options: CapacityEstimateOptions): CapacityEstimate {
  const { slots, first, times, now = () => performance.now() } = options
  let { costMs, latencyMs, foretoldMs } = first
  let jobs = 0
  /** Of them, those that the estimates do not include yet. */
  let added = 0
  /** Of these again, those that were foretold, and their times together. */
  let foretold = { jobs: 0, ms: 0 }
  let before = times()
  let busyAtMs = now()
  const soon = createShare(SOON_MS * slots, 0)
  const line = createShare(LINE_MS * slots, PRIOR_MS * slots)
  let lastServiceMs = costMs

  function update(): void {
    if (added === 0) return
    const total = times()
    const wallMs = total.wallMs - before.wallMs
    // The process's own work counts with packages: together the threads cannot have had more than they were there.
    const cpuMs = Math.min(wallMs, total.cpuMs - before.cpuMs)
    const weight = Math.max(1 - (1 - JOB_WEIGHT) ** added, added / jobs)
    const perJobMs = Math.max(LEAST_MS, cpuMs / added)
    costMs += (perJobMs - costMs) * weight
    foretoldMs += ((foretold.ms + (added - foretold.jobs) * perJobMs) / added - foretoldMs) * weight
    foretold = { jobs: 0, ms: 0 }
    soon.add(wallMs, cpuMs)
    line.add(wallMs, cpuMs)
    before = total
    busyAtMs = now()
    added = 0
  }

  /** The longer a worker has been idle, the less do the last seconds before say about the next ones. */
  function shareSoon(): number {
    const remembered = Math.exp(-(now() - busyAtMs) / IDLE_MEMORY_MS)
    return line.value() + (soon.value() - line.value()) * remembered
  }

  return {
    finished(jobLatencyMs, jobForetoldMs) {
      jobs += 1
      if (jobForetoldMs !== undefined) foretold = { jobs: foretold.jobs + 1, ms: foretold.ms + jobForetoldMs }
      added += 1
      latencyMs += (jobLatencyMs - latencyMs) * Math.max(JOB_WEIGHT, 1 / jobs)
    },
    serviceMs() {
      update()
      lastServiceMs = Math.max(LEAST_MS, costMs) / shareSoon()
      return lastServiceMs
    },
    lineMs() {
      update()
      return Math.max(LEAST_MS, costMs) / line.value()
    },
    lastServiceMs: () => lastServiceMs,
    latencyMs: () => latencyMs,
    answerMs: (others, ofJob = foretoldMs) => lastServiceMs * (others / slots + ofJob / foretoldMs),
    foretoldMs: () => foretoldMs,
  }
}

/** The part of their time that threads are on a processor, as a ratio of sums whose older parts fade with busy time. */
function createShare(memoryMs: number, priorMs: number) {
  let [wallMs, cpuMs] = [priorMs, priorMs]
  return {
    add(moreWallMs: number, moreCpuMs: number): void {
      const kept = Math.exp(-moreWallMs / memoryMs)
      wallMs = wallMs * kept + moreWallMs
      cpuMs = cpuMs * kept + moreCpuMs
    },
    /** 1 until it is known. */
    value: (): number => (wallMs === 0 ? 1 : Math.max(LEAST_SHARE, cpuMs / wallMs)),
  }
}

type MeasuredHasher = Pick<Hasher, 'decoy' | 'times' | 'foretell'> & {
  native: Pick<NativeEngine, 'forgetCalls'> | undefined
}

/**
 * Begins with the times of verifies on this machine: the least of a few, because a process that starts does other things too. A
 * cheap hash comes first, so that loading is not counted. How many of them would be hashed together says nothing of the jobs to come.
 */
export async function measureCapacity(
  { decoy, times, foretell, native }: MeasuredHasher,
  slots: number,
): Promise<CapacityEstimate> {
  await decoy('warm-up', WARM_UP)
  const first = { costMs: Number.POSITIVE_INFINITY, latencyMs: Number.POSITIVE_INFINITY }
  const begunAt = performance.now()
  for (let n = 0; n < MEASURED && (n === 0 || performance.now() - begunAt < MEASURED_FOR_MS); n += 1) {
    const [startedAt, { wallMs, cpuMs }] = [performance.now(), times()]
    await decoy('measured')
    first.latencyMs = Math.min(first.latencyMs, performance.now() - startedAt)
    first.costMs = Math.min(first.costMs, times().cpuMs - cpuMs, times().wallMs - wallMs)
  }
  native?.forgetCalls()
  const foretoldMs = foretell({ password: '' }) ?? first.costMs
  return createCapacityEstimate({ slots, first: { ...first, foretoldMs }, times })
}
