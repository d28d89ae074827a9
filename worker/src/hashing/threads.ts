/**
 * The threads of libuv's pool that packages hash on: one call for each slot at a time, in memory
 * that they share, and their times.
 */
import limitConcurrency, { type LimitFunction } from 'p-limit'

/** Times of hashing threads so far (ms): of all calls from begin to end, and on a processor. */
export interface ThreadTimes {
  wallMs: number
  cpuMs: number
}

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
