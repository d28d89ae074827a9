/** The threads of libuv's pool that packages hash on: one call for each slot at a time, and the time that they take. */
import limitConcurrency from 'p-limit'

export interface Threads {
  /** Runs a call when a thread is free. */
  run<T>(call: () => Promise<T>): Promise<T>
  /** The time of all calls so far, in milliseconds. */
  threadMs(): number
}

export function createThreads(count: number): Threads {
  const whenFree = limitConcurrency(count)
  let threadMs = 0

  async function timed<T>(call: () => Promise<T>): Promise<T> {
    const startedAt = performance.now()
    try {
      return await call()
    } finally {
      threadMs += performance.now() - startedAt
    }
  }

  return {
    run: (call) => whenFree(timed, call),
    threadMs: () => threadMs,
  }
}
