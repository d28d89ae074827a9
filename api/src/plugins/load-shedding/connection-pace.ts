/**
 * Paces answers that no limit counts, such as probes and documents from memory: beyond a rate of all connections, each connection gets one
 * answer a second. A client that asks once in two seconds waits for nothing, and many answers on one connection take no time from logins.
 */

/** Answers a second that are given at once, whatever the connection. */
const AT_ONCE_PER_SECOND = 100
/** Of answers on one connection, beyond that rate, in milliseconds. */
const INTERVAL_MS = 1_000

export class ConnectionPace {
  readonly #now: () => number
  /** When the last answer on a connection was or is due. */
  readonly #dueMs = new WeakMap<object, number>()
  #left = AT_ONCE_PER_SECOND
  #countedMs: number

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
    this.#countedMs = now()
  }

  /** Calls `answer` when an answer on this connection is due. */
  whenDue(connection: object, answer: () => void): void {
    const delayMs = this.delayMs(connection)
    if (delayMs === 0) answer()
    else setTimeout(answer, delayMs)
  }

  /** Milliseconds until the next answer on this connection, which counts from now on. */
  delayMs(connection: object): number {
    const nowMs = this.#now()
    this.#left = Math.min(AT_ONCE_PER_SECOND, this.#left + ((nowMs - this.#countedMs) * AT_ONCE_PER_SECOND) / 1_000)
    this.#countedMs = nowMs
    const isAtOnce = this.#left >= 1
    if (isAtOnce) this.#left -= 1
    const nextMs = (this.#dueMs.get(connection) ?? Number.NEGATIVE_INFINITY) + INTERVAL_MS
    const dueMs = isAtOnce ? nowMs : Math.max(nowMs, nextMs)
    this.#dueMs.set(connection, dueMs)
    return dueMs - nowMs
  }
}
