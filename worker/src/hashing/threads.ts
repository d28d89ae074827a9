/** The threads that hash, and their memory. */
import { totalmem } from 'node:os'
import limitConcurrency, { type LimitFunction } from 'p-limit'

/** Times of hashing threads so far (ms): of all calls from begin to end, and on a processor. */
export interface ThreadTimes {
  wallMs: number
  cpuMs: number
}

/** The most that any hash may take, in KiB. */
export const MEMORY_LIMIT_KIB = 1_048_576
/** What a thread has at least, in KiB: OWASP's argon2id is always accepted. */
const LEAST_KIB = 19_456
/** For the program itself (KiB): it takes 90 to 110 MiB. Chart and sizing guide repeat this. */
export const PROGRAM_KIB = 128 * 1_024

interface MemoryOptions {
  /** Hashing threads that there are processors for. */
  slots: number
  /** Of a new hash; 0 for bcrypt. */
  policyKib: number
  /** Whether another process has the same limit. */
  isShared: boolean
  /** Of the control group [this process's]. */
  limitBytes?: number
}

/**
 * Shares out what the limit leaves beside the program: a share for each thread, and one for all
 * that packages hash beside the native engine. Threads are as many as have what the policy takes:
 * the kernel kills a process above its limit, then every worker that takes the job.
 */
export function hashingMemory({
  slots,
  policyKib,
  isShared,
  limitBytes = Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, totalmem()),
}: MemoryOptions): { slots: number; slotKib: number } {
  const leftKib = Math.max(0, limitBytes / 1_024 - (isShared ? 2 : 1) * PROGRAM_KIB)
  const fitting = Math.floor(leftKib / Math.max(LEAST_KIB, policyKib)) - 1
  const threads = Math.max(1, Math.min(slots, fitting))
  const shareKib = Math.floor(leftKib / (threads + 1))
  return { slots: threads, slotKib: Math.max(LEAST_KIB, Math.min(MEMORY_LIMIT_KIB, shareKib)) }
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

  /** @param memoryKib of all calls at a time [unlimited]; a call that asks for more gets all */
  constructor(count: number, memoryKib = Number.POSITIVE_INFINITY) {
    this.#whenFree = limitConcurrency(count)
    this.#memoryKib = memoryKib
    this.#freeKib = memoryKib
  }

  /** Runs a call when a thread is free, and so much memory. */
  run<T>(call: () => Promise<T>, askedKib = 0): Promise<T> {
    return this.#whenFree(() => this.#timed(call, Math.min(askedKib, this.#memoryKib)))
  }

  /** Runs a test double, which waits in place of hashing: its time counts as processor time. */
  pretend<T>(call: () => Promise<T>): Promise<T> {
    return this.#whenFree(async () => {
      const startedAt = performance.now()
      try {
        return await call()
      } finally {
        const tookMs = performance.now() - startedAt
        this.#times.wallMs += tookMs
        this.#times.cpuMs += tookMs
      }
    })
  }

  times(): ThreadTimes {
    return { ...this.#times }
  }

  async #timed<T>(call: () => Promise<T>, takesKib: number): Promise<T> {
    await this.#roomFor(takesKib)
    const startedAt = performance.now()
    this.#change(1)
    try {
      return await call()
    } finally {
      this.#change(-1)
      this.#times.wallMs += performance.now() - startedAt
      this.#freeKib += takesKib
      this.#beginWaiting()
    }
  }

  /** Node tells no time of libuv's threads: while calls run, the process's time counts. */
  #change(by: 1 | -1): void {
    const { user, system } = process.cpuUsage()
    const nowMs = (user + system) / 1_000
    if (this.#running > 0) this.#times.cpuMs += nowMs - this.#readAtMs
    this.#readAtMs = nowMs
    this.#running += by
  }

  /** In the order of calls. */
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
