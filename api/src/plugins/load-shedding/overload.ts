/**
 * Detects overload: a standing queue, one that has not been empty for longer than a burst lasts (CoDel, RFC 8289). A queue that empties now
 * and then absorbs bursts; a standing queue only adds delay. A single pause of the process is not overload.
 */

/** How long a queue must not have been empty, in milliseconds. */
const INTERVAL_MS = 1_500
/** After this long without a request, or with the process stopped, the interval begins again, in milliseconds. */
const IDLE_MS = 500
/** A turn of the event loop that reads requests for longer than this counts as a queue, in milliseconds. */
const TURN_MS = 100
/** An overload is over when no request was refused or held back for this long, in milliseconds. */
const CALM_MS = 1_000

export interface Overload {
  /** To be called for each request. Measures its turn of the event loop. */
  requestRead(): void
  refused(): void
  /** A request was queued that would have begun without the overload. */
  heldBack(): void
  isOverloaded(): boolean
  /** Whether this turn has lasted so long that requests read now have waited for earlier ones of the same turn. */
  isTurnLate(): boolean
  /** Whether any request was refused within the last second. */
  isRefusing(): boolean
  /** Whether no request was read within the last second. */
  isIdle(): boolean
}

export interface OverloadOptions {
  clock: Clock
  hasQueue(): boolean
  /** Called at the end of each turn in which requests were read. */
  turnEnded(nowMs: number): void
}

export function createOverload({ clock, hasQueue, turnEnded }: OverloadOptions): Overload {
  const { now } = clock
  let turnStartMs: number | undefined
  let turnEndMs = now()
  let queueSinceMs: number | undefined
  let overloadedSinceMs: number | undefined
  let refusedMs = Number.NEGATIVE_INFINITY
  let heldBackMs = Number.NEGATIVE_INFINITY

  function endTurn(): void {
    const nowMs = now()
    const tookMs = nowMs - (turnStartMs ?? nowMs)
    turnStartMs = undefined
    turnEndMs = nowMs
    if (!hasQueue() && tookMs <= TURN_MS) queueSinceMs = undefined
    else queueSinceMs ??= nowMs
    if (queueSinceMs !== undefined && nowMs - queueSinceMs >= INTERVAL_MS) overloadedSinceMs ??= nowMs
    turnEnded(nowMs)
  }

  return {
    requestRead() {
      if (turnStartMs !== undefined) return
      turnStartMs = now()
      if (turnStartMs - turnEndMs > IDLE_MS) queueSinceMs = undefined
      if (overloadedSinceMs !== undefined && turnStartMs - Math.max(overloadedSinceMs, refusedMs, heldBackMs) > CALM_MS)
        overloadedSinceMs = undefined
      clock.afterTurn(endTurn)
    },
    refused() {
      refusedMs = now()
    },
    heldBack() {
      heldBackMs = now()
    },
    isOverloaded: () => overloadedSinceMs !== undefined,
    isTurnLate: () => turnStartMs !== undefined && now() - turnStartMs > TURN_MS,
    isRefusing: () => now() - refusedMs <= CALM_MS,
    isIdle: () => now() - turnEndMs > CALM_MS,
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
