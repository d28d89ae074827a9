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

  /** Takes a token, if there is one. Returns whether there was. */
  take(): boolean {
    if (!this.hasLeft()) return false
    this.#left -= 1
    return true
  }
}
