/**
 * When gateways and applications answer refusals. Clients that retry at once gain nothing by it, and cost little: on thousands of connections
 * their refusals took a quarter of a gateway's time. So no more are answered in a second than a share of the requests that are processed.
 * The others wait, by one timer, until their delay is at its longest.
 */

/** In milliseconds. */
const LONGEST_DELAY_MS = 3_000
/** Refusals for each request that is processed. */
const SHARE = 0.5
/** The lowest limit of refusals a second, because the throughput is unknown when a burst begins. */
const LEAST_PER_SECOND = 100
/** Refusals that are due within this time are answered in one batch, in milliseconds: clients that then ask again together cost a quarter less. */
const BATCH_MS = 100
/** The most refusals that wait. Beyond it the oldest is answered at once: clients that pipeline requests would fill the memory. */
const MOST_WAITING = 10_000

/** For `burstMs`: a hundred refusals are answered without a wait. Clients that obey Retry-After wait for nothing. */
export const REFUSED_AT_ONCE_MS = 1_000

export interface RefusalPaceOptions {
  /** Recent throughput, in requests a second. */
  perSecond(): number
  /** What a single refusal waits, in milliseconds. */
  leastDelayMs: number
  /** What may be answered without a wait after a pause, in milliseconds of the pace. */
  burstMs: number
  /** [3000] */
  longestDelayMs?: number
}

/** @returns the time at which a request refused at `nowMs` is answered, in milliseconds: never before an earlier refusal */
export function createRefusalTimes({
  perSecond,
  leastDelayMs,
  burstMs,
  longestDelayMs = LONGEST_DELAY_MS,
}: RefusalPaceOptions): (nowMs: number) => number {
  let nextMs = Number.NEGATIVE_INFINITY
  return (nowMs) => {
    const intervalMs = 1_000 / Math.max(LEAST_PER_SECOND, perSecond() * SHARE)
    const turnMs = Math.min(nowMs + longestDelayMs, Math.max(nowMs + leastDelayMs - burstMs, nextMs))
    nextMs = turnMs + intervalMs
    return Math.max(nowMs + leastDelayMs, turnMs)
  }
}

/** Returns how to hold a refusal: `answer` is called when it is due. */
export function createRefusalPace(options: RefusalPaceOptions): (answer: () => void) => void {
  const waiting: { answer: () => void; dueMs: number }[] = []
  const dueAt = createRefusalTimes(options)

  function answerDue(): void {
    const nowMs = performance.now()
    const later = waiting.findIndex(({ dueMs }) => dueMs > nowMs + BATCH_MS)
    for (const { answer } of waiting.splice(0, later < 0 ? waiting.length : later)) answer()
    const [next] = waiting
    if (next !== undefined) setTimeout(answerDue, next.dueMs - nowMs)
  }

  return (answer) => {
    const nowMs = performance.now()
    const dueMs = dueAt(nowMs)
    if (waiting.length === 0 && dueMs <= nowMs) return answer()
    waiting.push({ answer, dueMs })
    if (waiting.length > MOST_WAITING) for (const oldest of waiting.splice(0, 1)) oldest.answer()
    if (waiting.length === 1) setTimeout(answerDue, dueMs - nowMs)
  }
}
