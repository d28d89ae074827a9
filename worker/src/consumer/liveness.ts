/**
 * Liveness of a worker means progress. A worker is dead when it could take jobs and does not:
 * - it could take a job and jobs wait, but it has fetched no job for a while;
 * - its connection counts as up, but Redis has not answered on it for a while and does answer on a new one.
 * A Redis server that does not answer at all is no reason to restart a worker: it stays alive and waits.
 */

/** Redis answers twice a second normally; after a longer silence no job could have been fetched. */
const SILENCE_MS = 3_000
/** How often the connection is checked. */
const CHECK_INTERVAL_MS = 500

export interface Liveness {
  started(): void
  finished(): void
  /** Redis answered; `waiting` jobs can be taken. */
  redisAnswered(waiting: number): void
  /** Jobs in hand. */
  active(): number
  /** How long no progress has been made although it was possible, in milliseconds. */
  stuckMs(): number
  isAlive(): boolean
  close(): void
}

export interface LivenessOptions {
  /** The most jobs in hand at a time. */
  limit(): number
  /** Whether the connection to Redis counts as up. One that counts as down is being replaced already. */
  isConnected(): boolean
  /** Whether Redis answers on a new connection. Never rejects. */
  redisAnswersNewConnection(): Promise<boolean>
  /** In milliseconds; longer than a blocking read and a reconnect together. */
  stuckAfterMs: number
}

export function createLiveness(options: LivenessOptions, now: () => number = () => performance.now()): Liveness {
  const { limit, isConnected, redisAnswersNewConnection, stuckAfterMs } = options
  let active = 0
  let progressAt = now()
  let answeredAt = now()
  /** The time without progress when Redis last answered: without its answers no job can be fetched. */
  let idleMs = 0
  let cutOff = false
  let isChecking = false

  const silentMs = () => now() - answeredAt
  const isSilent = () => isConnected() && silentMs() >= stuckAfterMs

  async function checkConnection(): Promise<void> {
    // One check at a time: each opens a connection.
    if (isChecking) return
    isChecking = true
    if (!isConnected()) answeredAt = now()
    // The last condition is checked again because Redis may have answered meanwhile.
    cutOff = isSilent() && (await redisAnswersNewConnection()) && isSilent()
    isChecking = false
  }

  const timer = setInterval(() => void checkConnection(), CHECK_INTERVAL_MS)
  timer.unref()

  function progressed(change: number): void {
    active += change
    progressAt = now()
    idleMs = 0
  }

  return {
    started: () => progressed(1),
    finished: () => progressed(-1),
    redisAnswered(waiting) {
      // No job waited, no job more could be taken, or Redis was silent: no progress was possible until now.
      if (waiting === 0 || active >= limit() || silentMs() > SILENCE_MS) progressAt = now()
      answeredAt = now()
      idleMs = answeredAt - progressAt
      cutOff = false
    },
    active: () => active,
    stuckMs: () => (cutOff ? silentMs() : idleMs),
    isAlive: () => !cutOff && idleMs < stuckAfterMs,
    close: () => clearInterval(timer),
  }
}
