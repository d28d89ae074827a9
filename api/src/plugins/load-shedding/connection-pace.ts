/**
 * Paces answers that no limit counts, such as probes and documents from memory. Beyond a rate of
 * all connections, each connection gets one answer a second. A client that asks every two seconds
 * never waits, and many answers on one connection take no time from logins.
 */
import { TokenBucket } from '../token-bucket.js'

/** Answers a second that are given at once, whatever the connection. */
const AT_ONCE_PER_SECOND = 100
/** Time between answers on one connection beyond that rate, in milliseconds. */
const INTERVAL_MS = 1_000

export class ConnectionPace {
  readonly #now: () => number
  readonly #atOnce: TokenBucket
  /** When the last answer on a connection was or is due. */
  readonly #dueMs = new WeakMap<object, number>()

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
    this.#atOnce = new TokenBucket(AT_ONCE_PER_SECOND, () => AT_ONCE_PER_SECOND / 1_000, now)
  }

  whenDue(connection: object, answer: () => void): void {
    const delayMs = this.delayMs(connection)
    if (delayMs === 0) answer()
    else setTimeout(answer, delayMs)
  }

  /** Milliseconds until the next answer on this connection, which counts from now on. */
  delayMs(connection: object): number {
    const nowMs = this.#now()
    const nextMs = (this.#dueMs.get(connection) ?? Number.NEGATIVE_INFINITY) + INTERVAL_MS
    const dueMs = this.#atOnce.take() ? nowMs : Math.max(nowMs, nextMs)
    this.#dueMs.set(connection, dueMs)
    return dueMs - nowMs
  }
}
