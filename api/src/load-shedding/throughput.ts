/** Throughput as a moving average, and the time that requests were queued. */

/** The length of a measuring window, in milliseconds. */
const WINDOW_MS = 100
/** The weight of the last window in the moving average. */
const SMOOTHING = 0.3

export interface Throughput {
  begun(queuedMs: number): void
  answered(): void
  /** Ends the current window if it is long enough. */
  update(nowMs: number): void
  /** Requests answered in a millisecond. */
  perMs(): number
  /** The average time in the queue of requests of the last window that began any, in milliseconds. */
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
