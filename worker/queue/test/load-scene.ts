// The view of a queue and its workers for one test, with a clock of its own.
import { LoadState } from '../src/wait/load-state.ts'

/** Two slots of 200 ms each. */
export const workers = { workers: 1, slots: 2, jobsPerSecond: 10, linePerSecond: 10, serviceMs: 200, latencyMs: 200 }
/** An empty queue. */
export const noDepth = { waiting: 0, deferred: 0, active: 0, absent: 0, returned: 0, aheadOfKnown: 1 }
export const depth = { waiting: 3, deferred: 20, active: 2, absent: 0, returned: 0, aheadOfKnown: 1 }

export function scene() {
  let nowMs = 0
  const state = new LoadState(() => nowMs)
  return {
    state,
    pass(ms: number) {
      nowMs += ms
    },
  }
}
