/**
 * Liveness of a worker means progress: it is dead when slots are free, jobs wait, and nothing has been fetched for a while,
 * whatever else still answers.
 */

/** Longer than a queue's blocking read and a reconnect together. */
const STUCK_AFTER_MS = 15_000

export interface Liveness {
  started(): void
  finished(): void
  /** Jobs being hashed now. */
  active(): number
  /** Whether this worker is making the progress it could; `waiting` is the queue's depth as last seen. */
  isAlive(waiting: number): boolean
}

export function createLiveness(slots: number): Liveness {
  let active = 0
  let idleSince = performance.now()
  return {
    started() {
      active += 1
      idleSince = performance.now()
    },
    finished() {
      active -= 1
      idleSince = performance.now()
    },
    active: () => active,
    isAlive(waiting) {
      if (waiting === 0 || active >= slots) idleSince = performance.now()
      return performance.now() - idleSince < STUCK_AFTER_MS
    },
  }
}
