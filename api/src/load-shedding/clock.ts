/** Time as load shedding sees it, so that its tests can turn it. */
export interface Clock {
  /** Milliseconds, never backwards. */
  now(): number
  /** Calls once all that can be read now has been. */
  afterTurn(callback: () => void): void
  after(ms: number, callback: () => void): void
}

export const systemClock: Clock = {
  now: () => performance.now(),
  afterTurn: (callback) => void setImmediate(callback),
  after: (ms, callback) => void setTimeout(callback, ms),
}
