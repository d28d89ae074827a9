/**
 * Overload: requests have been queued at every moment for longer than a burst takes. A queue that empties now and then absorbs bursts; one
 * that never does only adds delay (a standing queue: CoDel, RFC 8289). A single pause of the process, of whatever length,
 * is no overload.
 */
import type { Clock } from './clock.js'

/** For this long there must have been a queue at every moment, in milliseconds. */
const INTERVAL_MS = 1_500
/** After this long without a request, or with the process stopped, the past says nothing of the present, in milliseconds. */
const IDLE_MS = 500
/** A turn of the event loop that takes longer than this to read what has arrived counts as a queue, in milliseconds. */
const TURN_MS = 100
/** An overload is over when nothing had to be refused for this long, in milliseconds. */
const CALM_MS = 1_000

export interface Overload {
  /** Is called for each request. Its turn of the event loop is followed to its end. */
  requestRead(): void
  refused(): void
  isOverloaded(): boolean
  /** Whether what is read now had to wait for what was read before it in the same turn. */
  isTurnLate(): boolean
  /** Whether any request was refused within the last second. */
  isRefusing(): boolean
  /** Whether no request was read within the last second. */
  isIdle(): boolean
}

export interface OverloadOptions {
  clock: Clock
  hasQueue(): boolean
  /** Is called at the end of each turn in which requests were read. */
  turnEnded(nowMs: number): void
}

export function createOverload({ clock, hasQueue, turnEnded }: OverloadOptions): Overload {
  const { now } = clock
  let turnStartMs: number | undefined
  let turnEndMs = now()
  let queueSinceMs: number | undefined
  let overloadedSinceMs: number | undefined
  let refusedMs = Number.NEGATIVE_INFINITY

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
      if (overloadedSinceMs !== undefined && turnStartMs - Math.max(overloadedSinceMs, refusedMs) > CALM_MS)
        overloadedSinceMs = undefined
      clock.afterTurn(endTurn)
    },
    refused() {
      refusedMs = now()
    },
    isOverloaded: () => overloadedSinceMs !== undefined,
    isTurnLate: () => turnStartMs !== undefined && now() - turnStartMs > TURN_MS,
    isRefusing: () => now() - refusedMs <= CALM_MS,
    isIdle: () => now() - turnEndMs > CALM_MS,
  }
}
