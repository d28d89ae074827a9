/** The threads that hash, and their memory. */
import { totalmem } from 'node:os'
import limitConcurrency, { type LimitFunction } from 'p-limit'
import { UnsupportedHashError } from './methods/recipe.js'

/** Times of hashing threads so far (ms): of all calls from begin to end, and on a processor. */
export interface ThreadTimes {
  wallMs: number
  cpuMs: number
}

/** The most that any hash may take, in KiB. */
export const MEMORY_LIMIT_KIB = 1_048_576
/** The least memory of a thread, in KiB: OWASP's argon2id is always accepted. */
const LEAST_KIB = 19_456
/**
 * For the program itself (KiB): it takes 90 to 110 MiB. OWASP's first choice of scrypt, 128 MiB and
 * 1 KiB, then fits into 256 MiB.
 */
export const PROGRAM_KIB = 127 * 1_024

/** Batches for each slot: one that is hashed, and one that waits. */
const BATCHES = 2

/** The number of jobs that keeps all hashing threads busy. */
export function jobsUnderLoad(slots: number, batchWidth: number): number {
  return slots * batchWidth * BATCHES
}

interface MemoryOptions {
  /** Hashing threads that there are processors for. */
  slots: number
  /** The memory of a new hash; 0 for bcrypt. */
  policyKib: number
  /** Whether another process has the same limit. */
  isShared: boolean
  /** The limit of the control group [this process's]. */
  limitBytes?: number
}

/**
 * Divides the memory that the limit leaves after the program: a share for each thread, and one for
 * all packages beside the native engine. A stored hash that takes more than a share is verified
 * alone, with all of it. There are only as many threads as can have the policy's memory: the kernel
 * kills a process above its limit, and then every worker that takes the job.
 */
export function hashingMemory({
  slots,
  policyKib,
  isShared,
  limitBytes = Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, totalmem()),
}: MemoryOptions): { slots: number; slotKib: number; mostKib: number } {
  const leftKib = Math.max(0, limitBytes / 1_024 - (isShared ? 2 : 1) * PROGRAM_KIB)
  const fitting = Math.floor(leftKib / Math.max(LEAST_KIB, policyKib)) - 1
  const threads = Math.max(1, Math.min(slots, fitting))
  const bounded = (kib: number) => Math.max(LEAST_KIB, Math.min(MEMORY_LIMIT_KIB, Math.floor(kib)))
  return { slots: threads, slotKib: bounded(leftKib / (threads + 1)), mostKib: bounded(leftKib) }
}

export function policyKib(policy: { algorithm: string; memoryKib?: number }): number {
  return policy.memoryKib ?? 0
}

/** The threads of libuv's pool that packages hash on: a call for each slot at a time. */
export class Threads {
  readonly #whenFree: LimitFunction
  readonly #memoryKib: number
  readonly #waiting: { takesKib: number; begin(): void }[] = []
  readonly #times = { wallMs: 0, cpuMs: 0 }
  #freeKib: number
  #running = 0
  #readAtMs = 0

  /** @param memoryKib of all calls at a time [unlimited] */
  constructor(count: number, memoryKib = Number.POSITIVE_INFINITY) {
    this.#whenFree = limitConcurrency(count)
    this.#memoryKib = memoryKib
    this.#freeKib = memoryKib
  }

  /** Runs a call when a thread and its memory are free. Throws {@link UnsupportedHashError}. */
  async run<T>(call: () => Promise<T>, takesKib = 0): Promise<T> {
    if (takesKib > this.#memoryKib)
      throw new UnsupportedHashError('the stored hash takes more memory than packages have beside the engine')
    return await this.#whenFree(() => this.#timed(call, takesKib))
  }

  /**
   * Runs a call of the native engine, whose threads have as much memory each as all packages have.
   * Beyond that, the engine hashes alone, and packages take no memory meanwhile.
   */
  async inEngine<T>(call: () => Promise<T>, takesKib = 0): Promise<T> {
    return await (takesKib > this.#memoryKib ? this.#holding(this.#memoryKib, call) : call())
  }

  times(): ThreadTimes {
    return { ...this.#times }
  }

  #timed<T>(call: () => Promise<T>, takesKib: number): Promise<T> {
    return this.#holding(takesKib, async () => {
      const startedAt = performance.now()
      this.#change(1)
      try {
        return await call()
      } finally {
        this.#change(-1)
        this.#times.wallMs += performance.now() - startedAt
      }
    })
  }

  async #holding<T>(takesKib: number, call: () => Promise<T>): Promise<T> {
    await this.#roomFor(takesKib)
    try {
      return await call()
    } finally {
      this.#freeKib += takesKib
      this.#beginWaiting()
    }
  }

  /** Node does not report the time of libuv's threads: during calls, the process's time counts. */
  #change(by: 1 | -1): void {
    const { user, system } = process.cpuUsage()
    const nowMs = (user + system) / 1_000
    if (this.#running > 0) this.#times.cpuMs += nowMs - this.#readAtMs
    this.#readAtMs = nowMs
    this.#running += by
  }

  /** Waits for memory, in the order of calls. */
  #roomFor(takesKib: number): Promise<void> | undefined {
    if (takesKib === 0) return undefined
    return new Promise((begin) => {
      this.#waiting.push({ takesKib, begin })
      this.#beginWaiting()
    })
  }

  #beginWaiting(): void {
    for (let next = this.#waiting[0]; next !== undefined && next.takesKib <= this.#freeKib; next = this.#waiting[0]) {
      this.#freeKib -= next.takesKib
      this.#waiting.shift()
      next.begin()
    }
  }
}
