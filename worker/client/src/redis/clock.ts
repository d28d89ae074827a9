/**
 * Redis's clock, as this process knows it. Deadlines are written and read by it at both ends, so gateways and workers whose
 * own clocks disagree still agree on when a job is late.
 */
import { performance } from 'node:perf_hooks'

/** A reading that took longer than this on the way says too little about the time to replace a better one. */
const ACCEPTED_ROUND_TRIP_MS = 100

export interface RedisClock {
  /** Epoch milliseconds, by Redis's clock; by this machine's until the first reading. */
  now(): number
  /** Runs a call that returns Redis's time and takes its answer as a reading. Errors of the call are passed on. */
  synchronize<T>(call: () => Promise<T>, timeOf: (answer: T) => number): Promise<T>
}

export function createRedisClock(): RedisClock {
  // Counted on the monotonic clock, so that a step of this machine's wall clock moves no deadline.
  let offsetMs = performance.timeOrigin
  let synchronized = false
  return {
    now: () => Math.round(performance.now() + offsetMs),
    async synchronize(call, timeOf) {
      const sentAt = performance.now()
      const answer = await call()
      const receivedAt = performance.now()
      if (!synchronized || receivedAt - sentAt <= ACCEPTED_ROUND_TRIP_MS) {
        offsetMs = timeOf(answer) - (sentAt + receivedAt) / 2
        synchronized = true
      }
      return answer
    },
  }
}
