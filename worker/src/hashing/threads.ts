/** The threads of libuv's pool that packages hash on: one call for each slot at a time, in memory that they share, and the time that they take. */
import limitConcurrency from 'p-limit'

export interface Threads {
  /** Runs a call when a thread is free, and so much memory. */
  run<T>(call: () => Promise<T>, memoryKib?: number): Promise<T>
  /** The time of all calls so far, in milliseconds. */
  threadMs(): number
}

/** @param memoryKib the memory of all calls at a time [as they ask for]; a call that asks for more has all of it */
export function createThreads(count: number, memoryKib = Number.POSITIVE_INFINITY): Threads {
  const whenFree = limitConcurrency(count)
  const waiting: { takesKib: number; begin(): void }[] = []
  let freeKib = memoryKib
  let threadMs = 0

  async function timed<T>(call: () => Promise<T>, askedKib: number): Promise<T> {
    const takesKib = Math.min(askedKib, memoryKib)
    await roomFor(takesKib)
    const startedAt = performance.now()
    try {
      return await call()
    } finally {
      threadMs += performance.now() - startedAt
      freeKib += takesKib
      beginWaiting()
    }
  }

  /** In the order of their calls. */
  function roomFor(takesKib: number): Promise<void> | undefined {
    if (takesKib === 0) return undefined
    return new Promise((begin) => {
      waiting.push({ takesKib, begin })
      beginWaiting()
    })
  }

  function beginWaiting(): void {
    for (let next = waiting[0]; next !== undefined && next.takesKib <= freeKib; next = waiting[0]) {
      freeKib -= next.takesKib
      waiting.shift()
      next.begin()
    }
  }

  return {
    run: (call, askedKib = 0) => whenFree(() => timed(call, askedKib)),
    threadMs: () => threadMs,
  }
}
