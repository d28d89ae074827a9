// Counts the outcomes of requests, second by second, and how long the callers waited.
import type { ApiAnswer } from '@spillway/infra/rig/api-client'
import { build } from 'hdr-histogram-js'

/**
 * The outcome of a request. `ok` is a verdict (a session, a registration, or a clear no); `ticket` an answer to be fetched
 * later; `busy` a refusal that says when to come back; `error` everything else, a dropped connection included.
 */
export const outcomes = ['ok', 'ticket', 'busy', 'timeout', 'error'] as const
export type Outcome = (typeof outcomes)[number]
export type Counts = Record<Outcome, number>

/** The outcome an HTTP status stands for, or the lack of one. */
export function outcomeOf({ status, failure }: Pick<ApiAnswer, 'status'> & Partial<ApiAnswer>): Outcome {
  if (failure !== undefined) return failure
  if (status === 202) return 'ticket'
  if (status === 429 || status === 503) return 'busy'
  return (status >= 200 && status < 300) || status === 401 ? 'ok' : 'error'
}

export class Tally {
  readonly counts = noCounts()
  readonly bySecond: Counts[] = []
  /**
   * Time to a verdict. A request that timed out is in it with the time it waited: leaving it out would make the slowest
   * server look fast. Refusals and tickets are not: they are quick, but not what was asked for.
   */
  readonly latency = new Latency()

  /** @param second the second of the run it is counted under */
  record(outcome: Outcome, waitedMs: number, second: number): void {
    this.counts[outcome]++
    while (this.bySecond.length <= second) this.bySecond.push(noCounts())
    const counts = this.bySecond[second]
    if (counts) counts[outcome]++
    if (outcome === 'ok' || outcome === 'timeout') this.latency.record(waitedMs)
  }

  get total(): number {
    return outcomes.reduce((sum, outcome) => sum + this.counts[outcome], 0)
  }

  /** Per cent of all requests. */
  share(...of: Outcome[]): number {
    return this.total === 0 ? 0 : (100 * of.reduce((sum, outcome) => sum + this.counts[outcome], 0)) / this.total
  }
}

function noCounts(): Counts {
  return { ok: 0, ticket: 0, busy: 0, timeout: 0, error: 0 }
}

/** Stored in microseconds: three digits are kept from 1 µs to ten minutes. */
const UNITS_PER_MS = 1_000
const HIGHEST_MS = 600_000

export class Latency {
  readonly #histogram = build({
    highestTrackableValue: HIGHEST_MS * UNITS_PER_MS,
    numberOfSignificantValueDigits: 3,
  })

  record(ms: number): void {
    this.#histogram.recordValue(Math.round(Math.min(Math.max(ms, 0), HIGHEST_MS) * UNITS_PER_MS))
  }

  atMs(percentile: number): number {
    return this.#histogram.getValueAtPercentile(percentile) / UNITS_PER_MS
  }

  get meanMs(): number {
    return this.#histogram.totalCount === 0 ? 0 : this.#histogram.mean / UNITS_PER_MS
  }

  get percentiles() {
    return {
      count: this.#histogram.totalCount,
      p50Ms: this.atMs(50),
      p95Ms: this.atMs(95),
      p99Ms: this.atMs(99),
      maxMs: this.#histogram.maxValue / UNITS_PER_MS,
    }
  }
}
