/**
 * Estimates the time of a slot that a job takes. A job's cost is the processor time of its thread,
 * which neighbours on the same cores do not change. The threads' share of a core has two estimates.
 * The last seconds predict the next seconds. Half a ticket's life predicts a ticket's life, because
 * a burst says nothing about the time after it. Latency is another time: five jobs hashed together
 * in 80 ms take 16 ms of the slot each.
 */
import type { Hasher } from './index.js'
import type { NativeEngine } from './native.js'
import type { ThreadTimes } from './threads.js'

/** Weight of a job in averages, which follow a change in ten jobs. First: 1, 1/2, 1/3, 1/4. */
const JOB_WEIGHT = 0.2
/** Busy time after which a measurement of a share has a third of its weight. */
const SOON_MS = 2_000
const LINE_MS = 150_000
/** A new worker counts as having seen free cores for this busy time. */
const PRIOR_MS = 5_000
/** How soon an idle worker forgets its last share. */
const IDLE_MEMORY_MS = 2_000
/** Lower bounds: a cost of 0 would be an infinite capacity. */
const LEAST_MS = 0.001
const LEAST_SHARE = 0.01
/** At its start a worker measures so many verifies, unless they take longer. */
const MEASURED = 4
const MEASURED_FOR_MS = 150
/** A cheap hash comes first, so that loading is not counted. */
const WARM_UP = { algorithm: 'argon2id', memoryKib: 4_096, time: 1, parallelism: 1 } as const

interface CapacityEstimateOptions {
  slots: number
  /** Values until the first job. */
  first: { costMs: number; latencyMs: number }
  /** The time of the hashing threads so far, counted as in full batches. */
  times(): ThreadTimes
  now?(): number
}

export class CapacityEstimate {
  readonly #times: () => ThreadTimes
  readonly #now: () => number
  readonly #soon: CoreShare
  readonly #line: CoreShare
  #costMs: number
  #latencyMs: number
  #jobs = 0
  /** Jobs that the estimates do not include yet. */
  #added = 0
  #before: ThreadTimes
  #busyAtMs: number
  #lastServiceMs: number

  constructor({ slots, first, times, now = () => performance.now() }: CapacityEstimateOptions) {
    this.#times = times
    this.#now = now
    this.#soon = new CoreShare(SOON_MS * slots, 0)
    this.#line = new CoreShare(LINE_MS * slots, PRIOR_MS * slots)
    this.#costMs = first.costMs
    this.#latencyMs = first.latencyMs
    this.#before = times()
    this.#busyAtMs = now()
    this.#lastServiceMs = first.costMs
  }

  /** Counts a job with its time from taking to hash. */
  finished(latencyMs: number): void {
    this.#jobs += 1
    this.#added += 1
    this.#latencyMs += (latencyMs - this.#latencyMs) * Math.max(JOB_WEIGHT, 1 / this.#jobs)
  }

  /** Time of a slot for each job in the next seconds (ms), as under load. */
  serviceMs(): number {
    this.#update()
    this.#lastServiceMs = Math.max(LEAST_MS, this.#costMs) / this.#shareSoon()
    return this.#lastServiceMs
  }

  /** The same over the life of a ticket. */
  lineMs(): number {
    this.#update()
    return Math.max(LEAST_MS, this.#costMs) / this.#line.value()
  }

  /** The last value of serviceMs(): a new one would charge a batch to its first job. */
  lastServiceMs(): number {
    return this.#lastServiceMs
  }

  /** The time from taking a job to its hash. */
  latencyMs(): number {
    return this.#latencyMs
  }

  #update(): void {
    const added = this.#added
    if (added === 0) return
    const total = this.#times()
    const wallMs = total.wallMs - this.#before.wallMs
    // With packages the process's own work counts, too; threads compute no longer than they run.
    const cpuMs = Math.min(wallMs, total.cpuMs - this.#before.cpuMs)
    const weight = Math.max(1 - (1 - JOB_WEIGHT) ** added, added / this.#jobs)
    const perJobMs = Math.max(LEAST_MS, cpuMs / added)
    this.#costMs += (perJobMs - this.#costMs) * weight
    this.#soon.add(wallMs, cpuMs)
    this.#line.add(wallMs, cpuMs)
    this.#before = total
    this.#busyAtMs = this.#now()
    this.#added = 0
  }

  /** The longer a worker has been idle, the less its last busy seconds say about the next ones. */
  #shareSoon(): number {
    const remembered = Math.exp(-(this.#now() - this.#busyAtMs) / IDLE_MEMORY_MS)
    return this.#line.value() + (this.#soon.value() - this.#line.value()) * remembered
  }
}

/** A ratio of sums whose older parts fade with busy time. */
class CoreShare {
  readonly #memoryMs: number
  #wallMs: number
  #cpuMs: number

  constructor(memoryMs: number, priorMs: number) {
    this.#memoryMs = memoryMs
    this.#wallMs = priorMs
    this.#cpuMs = priorMs
  }

  add(wallMs: number, cpuMs: number): void {
    const kept = Math.exp(-wallMs / this.#memoryMs)
    this.#wallMs = this.#wallMs * kept + wallMs
    this.#cpuMs = this.#cpuMs * kept + cpuMs
  }

  /** The share; 1 until it is known. */
  value(): number {
    return this.#wallMs === 0 ? 1 : Math.max(LEAST_SHARE, this.#cpuMs / this.#wallMs)
  }
}

type MeasuredHasher = Pick<Hasher, 'dummy' | 'times'> & {
  native: Pick<NativeEngine, 'forgetCalls'> | undefined
}

/** Begins with the shortest of a few verifies: a starting process also does other work. */
export async function measureCapacity(hasher: MeasuredHasher, slots: number): Promise<CapacityEstimate> {
  await hasher.dummy('warm-up', WARM_UP)
  const first = { costMs: Number.POSITIVE_INFINITY, latencyMs: Number.POSITIVE_INFINITY }
  const begunAt = performance.now()
  for (let n = 0; n < MEASURED && (n === 0 || performance.now() - begunAt < MEASURED_FOR_MS); n += 1) {
    const [startedAt, { wallMs, cpuMs }] = [performance.now(), hasher.times()]
    await hasher.dummy('measured')
    first.latencyMs = Math.min(first.latencyMs, performance.now() - startedAt)
    first.costMs = Math.min(first.costMs, hasher.times().cpuMs - cpuMs, hasher.times().wallMs - wallMs)
  }
  hasher.native?.forgetCalls()
  return new CapacityEstimate({ slots, first, times: () => hasher.times() })
}
