/** Redis's clock, estimated: the common one of gateways and workers, for deadlines. */
import { performance } from 'node:perf_hooks'

/** A reading with a longer round trip is too inaccurate to replace an earlier one. */
const ACCEPTED_ROUND_TRIP_MS = 100

export class RedisClock {
  // Relative to the monotonic clock, so that steps of this machine's wall clock do not move
  // deadlines.
  #offsetMs = performance.timeOrigin
  #isSynchronized = false

  /** Epoch milliseconds by Redis's clock; by this machine's clock until the first reading. */
  readonly now = (): number => Math.round(performance.now() + this.#offsetMs)

  /** Takes a reading from a call whose answer contains Redis's time. Rejects as the call does. */
  async synchronize<T>(call: () => Promise<T>, timeOf: (answer: T) => number): Promise<T> {
    const sentAt = performance.now()
    const answer = await call()
    const receivedAt = performance.now()
    if (!this.#isSynchronized || receivedAt - sentAt <= ACCEPTED_ROUND_TRIP_MS) {
      this.#offsetMs = timeOf(answer) - (sentAt + receivedAt) / 2
      this.#isSynchronized = true
    }
    return answer
  }
}
