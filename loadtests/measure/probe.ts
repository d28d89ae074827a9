// A probe asks an endpoint at a constant rate, however slow the answers are (an open loop).
import { startLoop } from '@spillway/infra/rig/open-loop'
import { quantile } from '@spillway/infra/rig/quantile'

export interface Asked {
  /** When it should have been asked, by `performance.now()`. */
  dueMs: number
  /** From when it was due: late requests, and those that wait for one another, look slow. */
  tookMs: number
  isLost: boolean
}

interface ProbeOptions {
  perSecond: number
  /** Sends a request. False and a rejection are failures. */
  ask(): Promise<unknown>
  /** What a failure counts as, and the most of an answer, in milliseconds [what it took]. */
  timeoutMs?: number
  /** What is open then is left out. */
  interrupted?: AbortSignal
}

export class Probe {
  readonly asked: Asked[] = []
  /** When the requests were due that have no answer yet, the oldest first. */
  readonly open = new Set<number>()
  /** By how much requests left later than they were due: this program's doing. */
  readonly late: { dueMs: number; lateMs: number }[] = []
  readonly #options: ProbeOptions
  #loop: { stop(): Promise<void> } | undefined

  constructor(options: ProbeOptions) {
    this.#options = options
  }

  get tookMs(): number[] {
    return this.asked.map(({ tookMs }) => tookMs)
  }

  get failed(): number {
    return this.asked.filter(({ isLost }) => isLost).length
  }

  /** As text: `12.3 ms`. */
  p99(): string {
    return `${(quantile(this.tookMs, 0.99) ?? 0).toFixed(1)} ms`
  }

  /** Asks from now on, also after a stop. */
  start(): this {
    const { perSecond } = this.#options
    this.#loop = startLoop({ rateAt: () => perSecond, send: (dueMs) => this.#ask(dueMs) })
    return this
  }

  /** Resolves when the last is answered. */
  async stop(): Promise<void> {
    await this.#loop?.stop()
  }

  async #ask(dueMs: number): Promise<void> {
    const { ask, timeoutMs, interrupted } = this.#options
    this.open.add(dueMs)
    this.late.push({ dueMs, lateMs: performance.now() - dueMs })
    const isLost = (await ask().catch(() => false)) === false
    this.open.delete(dueMs)
    if (interrupted?.aborted) return
    const tookMs = performance.now() - dueMs
    const counted = isLost ? (timeoutMs ?? tookMs) : Math.min(tookMs, timeoutMs ?? tookMs)
    this.asked.push({ dueMs, tookMs: counted, isLost })
  }
}
