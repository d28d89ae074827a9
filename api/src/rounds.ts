/** Repeats background work until closed, with jitter, so that gateways do not run it together. */
import { setTimeout as sleep } from 'node:timers/promises'

interface RoundsOptions {
  /** The average pause, in milliseconds. */
  periodMs: number
  round(signal: AbortSignal): Promise<void>
  onFailure(error: unknown): void
}

/** Runs a round after each pause. A failure does not stop the next round. */
export class Rounds {
  readonly #closing = new AbortController()
  readonly #running: Promise<void>

  constructor(options: RoundsOptions) {
    this.#running = this.#run(options)
  }

  /** Stops, after the round in progress. */
  async close(): Promise<void> {
    this.#closing.abort()
    await this.#running
  }

  async #run({ periodMs, round, onFailure }: RoundsOptions): Promise<void> {
    const { signal } = this.#closing
    while (!signal.aborted) {
      await sleep(pauseMs(periodMs), undefined, { signal }).catch(() => {})
      if (!signal.aborted) await round(signal).catch(onFailure)
    }
  }
}

/** 0.5 to 1.5 times the period. */
function pauseMs(periodMs: number): number {
  return periodMs * (0.5 + Math.random())
}
