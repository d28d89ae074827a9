/** The threads of libuv's pool that packages hash on: one call for each slot at a time, in memory that they share, and the time that they take. */
import limitConcurrency from 'p-limit'

/** The time of hashing threads so far, in milliseconds: of all calls from begin to end, and of these what they were on a processor. */
export interface ThreadTimes {
  wallMs: number
  cpuMs: number
}

export interface Threads {
  /** Runs a call when a thread is free, and so much memory. */
  run<T>(call: () => Promise<T>, memoryKib?: number): Promise<T>
  /** The same for a call that waits in place of hashing, as test doubles do: its time counts as processor time. */
  pretend<T>(call: () => Promise<T>): Promise<T>
  times(): ThreadTimes
}

/** @param memoryKib the memory of all calls at a time [as they ask for]; a call that asks for more has all of it */
export function createThreads(count: number, memoryKib = Number.POSITIVE_INFINITY): Threads {
  const whenFree = limitConcurrency(count)
  const waiting: { takesKib: number; begin(): void }[] = []
  let freeKib = memoryKib
  let [wallMs, cpuMs] = [0, 0]
  let running = 0
  let readAtMs = 0

  /** Node tells no processor time of libuv's threads: while calls run, the process's own time counts, which hardly does anything else. */
  function change(by: 1 | -1): void {
    const nowMs = processorMs()
    if (running > 0) cpuMs += nowMs - readAtMs
    readAtMs = nowMs
    running += by
  }

  async function timed<T>(call: () => Promise<T>, askedKib: number): Promise<T> {
    const takesKib = Math.min(askedKib, memoryKib)
    await roomFor(takesKib)
    const startedAt = performance.now()
    change(1)
    try {
      return await call()
    } finally {
      change(-1)
      wallMs += performance.now() - startedAt
      freeKib += takesKib
      beginWaiting()
    }
  }

  async function pretended<T>(call: () => Promise<T>): Promise<T> {
    const startedAt = performance.now()
    try {
      return await call()
    } finally {
      const tookMs = performance.now() - startedAt
      wallMs += tookMs
      cpuMs += tookMs
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
    pretend: (call) => whenFree(pretended, call),
    times: () => ({ wallMs, cpuMs }),
  }
}

function processorMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}
