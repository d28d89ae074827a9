// A probe asks an endpoint at a constant rate, however slow the answers are (an open loop).
import { startLoop } from '../load/open-loop.ts'
import { quantile } from './quantile.ts'

interface ProbeOptions {
  perSecond: number
  /** Sends a request. False and a rejection are failures. */
  ask(): Promise<unknown>
}

export class Probe {
  /** From when each was due, in ms: late requests, and those that wait for one another, look slow. */
  readonly tookMs: number[] = []
  failed = 0
  readonly #options: ProbeOptions
  #loop: { stop(): Promise<void> } | undefined

  constructor(options: ProbeOptions) {
    this.#options = options
  }

  /** As text: `12.3 ms`. */
  p99(): string {
    return `${(quantile(this.tookMs, 0.99) ?? 0).toFixed(1)} ms`
  }

  start(): this {
    const { perSecond, ask } = this.#options
    const send = async (dueMs: number) => {
      if ((await ask().catch(() => false)) === false) this.failed++
      this.tookMs.push(performance.now() - dueMs)
    }
    this.#loop = startLoop(perSecond, send)
    return this
  }

  /** Resolves when the last is answered. */
  async stop(): Promise<void> {
    await this.#loop?.stop()
  }
}
