/** Throughput: requests answered in a millisecond of late, and how long they were queued, as moving averages. */

/** Both are averaged over windows of this length, in milliseconds. */
const WINDOW_MS = 100
/** The weight of the last window in the average. */
const SMOOTHING = 0.3

export interface Throughput {
  begun(queuedMs: number): void
  answered(): void
  /** Ends a window that has been open for long enough. */
  update(nowMs: number): void
  perMs(): number
  /** How long the requests of the last window that began any were queued, on average, in milliseconds. */
  queuedMs(): number
}

export function createThroughput(startMs: number): Throughput {
  let window = { startMs, begun: 0, queuedMs: 0, answered: 0 }
  let perMs = 0
  let queuedMs = 0
  return {
    begun(ms) {
      window.begun++
      window.queuedMs += ms
    },
    answered: () => void window.answered++,
    update(nowMs) {
      const lengthMs = nowMs - window.startMs
      if (lengthMs < WINDOW_MS) return
      perMs += SMOOTHING * (window.answered / lengthMs - perMs)
      if (window.begun > 0) queuedMs = window.queuedMs / window.begun
      window = { startMs: nowMs, begun: 0, queuedMs: 0, answered: 0 }
    },
    perMs: () => perMs,
    queuedMs: () => queuedMs,
  }
}
