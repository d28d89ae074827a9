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
