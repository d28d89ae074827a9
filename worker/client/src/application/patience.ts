/**
 * Calls without a deadline wait here, in their order, until there is room. So neither the queue nor
 * the process beside holds more than a minute's work. They are refused as any other call is where
 * nothing hashes.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { PasswordsError } from './passwords-error.js'

/** How long one attempt may wait to be hashed. */
export const ATTEMPT_MS = 60_000
const LOOK_AGAIN_MS = 100
/** Of what admission takes for the rest of an attempt: its prediction may be wrong. */
const SHARE = 0.5

export class Patience {
  readonly #admit: (waitMs: number) => Promise<void>
  #last: Promise<unknown> = Promise.resolve()

  /**
   * @param admit throws `busy` for a call that would not be answered within this time, and other
   * errors for one that would never be
   */
  constructor(admit: (waitMs: number) => Promise<void>) {
    this.#admit = admit
  }

  /** The first verdict of an attempt; undefined when the signal fires first. */
  async attempt<T>(perform: (waitMs: number) => Promise<T | undefined>, signal: AbortSignal): Promise<T | undefined> {
    while (!signal.aborted) {
      const turn = this.#admitted(this.#last, signal)
      this.#last = turn.catch(() => undefined)
      await turn
      const verdict = signal.aborted ? undefined : await perform(ATTEMPT_MS)
      if (verdict !== undefined) return verdict
    }
    return undefined
  }

  async #admitted(before: Promise<unknown>, signal: AbortSignal): Promise<void> {
    await before
    while (!signal.aborted) {
      try {
        return await this.#admit(ATTEMPT_MS * SHARE)
      } catch (error) {
        if (!(error instanceof PasswordsError) || error.code !== 'busy') throw error
        await sleep(LOOK_AGAIN_MS)
      }
    }
  }
}
