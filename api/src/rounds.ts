/** Repeats background work until closed, with jitter so that gateways do not run it together. */
import { setTimeout as sleep } from 'node:timers/promises'

export interface Rounds {
  /** Stops, after the round in progress. */
  close(): Promise<void>
}

/** Runs a round after each pause. After a failure the next round comes all the same. */
export function startRounds(options: {
  /** The average pause, in milliseconds. */
  periodMs: number
  round(signal: AbortSignal): Promise<void>
  onFailure(error: unknown): void
}): Rounds {
  const { periodMs, round, onFailure } = options
  const closing = new AbortController()
  const { signal } = closing

  async function run(): Promise<void> {
    while (!signal.aborted) {
      await sleep(pauseMs(periodMs), undefined, { signal }).catch(() => {})
      if (!signal.aborted) await round(signal).catch(onFailure)
    }
  }

  const running = run()
  return {
    async close() {
      closing.abort()
      await running
    },
  }
}

/** 0.5 to 1.5 of the period, so that gateways do not run their rounds together. */
export function pauseMs(periodMs: number): number {
  return periodMs * (0.5 + Math.random())
}
