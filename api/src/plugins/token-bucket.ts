/** A token bucket: `most` tokens at once, then as many as come in the time that has passed. */
export class TokenBucket {
  readonly #most: number
  readonly #perMs: () => number
  readonly #now: () => number
  #left: number
  #refilledMs: number

  /** @param perMs tokens that come in a millisecond, at present */
  constructor(most: number, perMs: () => number, now: () => number = () => performance.now()) {
    this.#most = most
    this.#perMs = perMs
    this.#now = now
    this.#left = most
    this.#refilledMs = now()
  }

  hasLeft(): boolean {
    const nowMs = this.#now()
    this.#left = Math.min(this.#most, this.#left + this.#perMs() * (nowMs - this.#refilledMs))
    this.#refilledMs = nowMs
    return this.#left >= 1
  }

  take(): boolean {
    if (!this.hasLeft()) return false
    this.#left -= 1
    return true
  }
}

/** Answers a second that are given at once, whatever the connection. */
const AT_ONCE_PER_SECOND = 100
/** Time between answers on one connection beyond that rate, in milliseconds. */
const INTERVAL_MS = 1_000

/**
 * Paces answers that no limit counts, such as probes and documents from memory. Beyond a rate of
 * all connections, each connection gets one answer a second. A client that asks every two seconds
 * never waits, and many answers on one connection take no time from logins.
 */
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
