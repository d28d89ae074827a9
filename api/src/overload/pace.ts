/** Holds refusals, so that a client that asks again at once gains nothing. */

/** The most held answers. Beyond it, the oldest is sent: a flood must not fill the memory. */
const MOST_HELD = 10_000

/** Answers that are held, each with a timer. */
export class Pace {
  readonly #heldMs: () => number
  readonly #most: number
  readonly #held = new Map<NodeJS.Timeout, () => void>()

  /** @param heldMs how long an answer is held, in milliseconds */
  constructor(heldMs: () => number, most = MOST_HELD) {
    this.#heldMs = heldMs
    this.#most = most
  }

  /** Calls `answer` when it is due. */
  hold(answer: () => void): void {
    const ms = this.#heldMs()
    if (ms <= 0) {
      answer()
      return
    }
    const timer = setTimeout(() => this.#give(timer), ms)
    this.#held.set(timer, answer)
    const [oldest] = this.#held.keys()
    if (this.#held.size > this.#most && oldest !== undefined) this.#give(oldest)
  }

  /** Sends all answers that are held, so that nobody waits for a process that stops. */
  close(): void {
    for (const timer of this.#held.keys()) this.#give(timer)
  }

  #give(timer: NodeJS.Timeout): void {
    clearTimeout(timer)
    const answer = this.#held.get(timer)
    this.#held.delete(timer)
    answer?.()
  }
}
