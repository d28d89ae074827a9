/**
 * Liveness of a worker means progress. It is dead when it could take jobs and does not, whatever else still answers:
 * - a slot is free and jobs wait, but nothing has been fetched for a while;
 * - its connection says it is up, but Redis has not answered over it for a while and does answer over a new one.
 * A Redis that answers nobody is no reason to restart anything: the worker then waits for it, alive.
 */

/** Redis is heard twice a second while all is well. */
const SILENCE_MS = 3_000
/** How often silence is looked into. */
const CHECK_INTERVAL_MS = 500

export interface Liveness {
  started(): void
  finished(): void
  /** Redis answered, and this many jobs wait that could be taken. */
  heard(waiting: number): void
  /** Jobs being hashed now. */
  active(): number
  /** For how long there has been no progress although there could have been, in milliseconds. */
  stuckMs(): number
  isAlive(): boolean
  close(): void
}

export interface LivenessOptions {
  slots: number
  /** Whether the connection to Redis believes that it is up. One that knows better is already being replaced. */
  isConnected(): boolean
  /** Asks Redis over a new connection; false when that cannot be had. Never rejects. */
  redisAnswersNewConnection(): Promise<boolean>
  /** Longer than a queue's blocking read and a reconnect together. */
  stuckAfterMs: number
}

export function createLiveness(options: LivenessOptions, now: () => number = () => performance.now()): Liveness {
  const { slots, isConnected, redisAnswersNewConnection, stuckAfterMs } = options
  let active = 0
  let progressAt = now()
  let heardAt = now()
  /** How long there had been no progress when Redis was last heard: what it does not answer cannot be fetched. */
  let idleMs = 0
  let cutOff = false
  let isLooking = false

  const silentMs = () => now() - heardAt
  const hearsNothing = () => isConnected() && silentMs() >= stuckAfterMs

  async function lookIntoSilence(): Promise<void> {
    // One look at a time: each opens a connection.
    if (isLooking) return
    isLooking = true
    if (!isConnected()) heardAt = now()
    // Asked again afterwards: meanwhile Redis may have been heard after all.
    cutOff = hearsNothing() && (await redisAnswersNewConnection()) && hearsNothing()
    isLooking = false
  }

  const timer = setInterval(() => void lookIntoSilence(), CHECK_INTERVAL_MS)
  timer.unref()

  function progressed(change: number): void {
    active += change
    progressAt = now()
    idleMs = 0
  }

  return {
    started: () => progressed(1),
    finished: () => progressed(-1),
    heard(waiting) {
      // Nothing to fetch, nothing to put it in, or no chance until now: not having fetched is no fault.
      if (waiting === 0 || active >= slots || silentMs() > SILENCE_MS) progressAt = now()
      heardAt = now()
      idleMs = heardAt - progressAt
      cutOff = false
    },
    active: () => active,
    stuckMs: () => (cutOff ? silentMs() : idleMs),
    isAlive: () => !cutOff && idleMs < stuckAfterMs,
    close: () => clearInterval(timer),
  }
}
