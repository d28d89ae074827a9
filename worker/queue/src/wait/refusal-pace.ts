/**
 * When refusals are answered and tickets given. Clients that ask again at once must gain nothing
 * and cost little: their refusals took a quarter of a gateway's time. So in a second no more are
 * answered than a share of the requests that are processed. The others wait, by one timer.
 */

/** In milliseconds. */
const LONGEST_DELAY_MS = 3_000
/** Refusals for each request that is processed. */
const SHARE = 0.5
/** The lowest limit of refusals a second, because the throughput is unknown when a burst begins. */
const LEAST_PER_SECOND = 100
/** Refusals due within this time are one batch: clients that retry together cost a quarter less. */
const BATCH_MS = 100
/** Refusals that wait. Beyond it the oldest is answered: pipelining would fill the memory. */
const MOST_WAITING = 10_000
/** Milliseconds of the pace answered at once after a pause: clients that obey wait for nothing. */
const AT_ONCE_MS = 1_000

export interface PaceOptions {
  /** Recent throughput, in requests a second. */
  perSecond(): number
  /** What a single refusal waits, in milliseconds; then no burst is answered at once [0]. */
  leastDelayMs?: number
  /** The longest that one waits, in milliseconds, and never less than its default [3000]. */
  longestDelayMs?: number
}

export class Pace {
  readonly #options: PaceOptions
  readonly #now: () => number
  readonly #waiting: { answer: () => void; dueMs: number }[] = []
  #nextMs = Number.NEGATIVE_INFINITY

  constructor(options: PaceOptions, now: () => number = () => performance.now()) {
    this.#options = options
    this.#now = now
  }

  /** How long the next one waits, in milliseconds: never for less than those before it are due. */
  delayMs(): number {
    const { perSecond, leastDelayMs = 0, longestDelayMs = 0 } = this.#options
    const nowMs = this.#now()
    const latestMs = nowMs + Math.max(LONGEST_DELAY_MS, longestDelayMs)
    const earliestMs = leastDelayMs > 0 ? nowMs + leastDelayMs : nowMs - AT_ONCE_MS
    const turnMs = Math.min(latestMs, Math.max(earliestMs, this.#nextMs))
    this.#nextMs = turnMs + 1_000 / Math.max(LEAST_PER_SECOND, perSecond() * SHARE)
    return Math.max(leastDelayMs, turnMs - nowMs)
  }

  /** Calls `answer` when a refusal is due. */
  whenDue(answer: () => void): void {
    const nowMs = this.#now()
    const dueMs = nowMs + this.delayMs()
    if (this.#waiting.length === 0 && dueMs <= nowMs) {
      answer()
      return
    }
    this.#waiting.push({ answer, dueMs })
    if (this.#waiting.length > MOST_WAITING) for (const oldest of this.#waiting.splice(0, 1)) oldest.answer()
    if (this.#waiting.length === 1) setTimeout(() => this.#answerDue(), dueMs - nowMs)
  }

  #answerDue(): void {
    const nowMs = this.#now()
    const later = this.#waiting.findIndex(({ dueMs }) => dueMs > nowMs + BATCH_MS)
    for (const { answer } of this.#waiting.splice(0, later < 0 ? this.#waiting.length : later)) answer()
    const [next] = this.#waiting
    if (next !== undefined) setTimeout(() => this.#answerDue(), next.dueMs - nowMs)
  }
}
