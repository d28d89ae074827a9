/**
 * Detects overload: a standing queue, which has not been empty for longer than a burst lasts
 * (CoDel, RFC 8289). A queue that empties now and then absorbs bursts; a standing queue only adds
 * delay. A single pause of the process is not overload.
 */

/** How long a queue must not have been empty, in milliseconds. */
const INTERVAL_MS = 1_500
/** After this long without a request, or stopped, the interval begins again, in milliseconds. */
const IDLE_MS = 500
/** A turn that reads requests for longer than this counts as a queue, in milliseconds. */
const TURN_MS = 100
/** An overload is over when no request was refused or held back for this long, in milliseconds. */
const CALM_MS = 1_000

interface OverloadOptions {
  clock: Clock
  hasQueue(): boolean
  /** Called at the end of each turn in which requests were read. */
  turnEnded(nowMs: number): void
}

export class Overload {
  readonly #options: OverloadOptions
  readonly #now: () => number
  #turnStartMs: number | undefined
  #turnEndMs: number
  #queueSinceMs: number | undefined
  #overloadedSinceMs: number | undefined
  #refusedMs = Number.NEGATIVE_INFINITY
  #heldBackMs = Number.NEGATIVE_INFINITY

  constructor(options: OverloadOptions) {
    this.#options = options
    this.#now = options.clock.now
    this.#turnEndMs = this.#now()
  }

  /** To be called for each request. Measures its turn of the event loop. */
  requestRead(): void {
    if (this.#turnStartMs !== undefined) return
    this.#turnStartMs = this.#now()
    if (this.#turnStartMs - this.#turnEndMs > IDLE_MS) this.#queueSinceMs = undefined
    const lastMs = Math.max(this.#overloadedSinceMs ?? 0, this.#refusedMs, this.#heldBackMs)
    if (this.#turnStartMs - lastMs > CALM_MS) this.#overloadedSinceMs = undefined
    this.#options.clock.afterTurn(() => this.#endTurn())
  }

  refused(): void {
    this.#refusedMs = this.#now()
  }

  /** A request was queued that would have begun without the overload. */
  heldBack(): void {
    this.#heldBackMs = this.#now()
  }

  isOverloaded(): boolean {
    return this.#overloadedSinceMs !== undefined
  }

  /** Whether requests read now have waited for earlier ones of the same turn. */
  isTurnLate(): boolean {
    return this.#turnStartMs !== undefined && this.#now() - this.#turnStartMs > TURN_MS
  }

  /** Whether any request was refused within the last second. */
  isRefusing(): boolean {
    return this.#now() - this.#refusedMs <= CALM_MS
  }

  /** Whether no request was read within the last second. */
  isIdle(): boolean {
    return this.#now() - this.#turnEndMs > CALM_MS
  }

  #endTurn(): void {
    const nowMs = this.#now()
    const tookMs = nowMs - (this.#turnStartMs ?? nowMs)
    this.#turnStartMs = undefined
    this.#turnEndMs = nowMs
    if (!this.#options.hasQueue() && tookMs <= TURN_MS) this.#queueSinceMs = undefined
    else this.#queueSinceMs ??= nowMs
    if (this.#queueSinceMs !== undefined && nowMs - this.#queueSinceMs >= INTERVAL_MS) this.#overloadedSinceMs ??= nowMs
    this.#options.turnEnded(nowMs)
  }
}

/** The clock of load shedding, which tests replace. */
export interface Clock {
  /** Milliseconds, never backwards. */
  now(): number
  /** Calls back at the end of this turn of the event loop, after all pending reads. */
  afterTurn(callback: () => void): void
  after(ms: number, callback: () => void): void
}

export const systemClock: Clock = {
  now: () => performance.now(),
  afterTurn: (callback) => void setImmediate(callback),
  after: (ms, callback) => void setTimeout(callback, ms),
}
