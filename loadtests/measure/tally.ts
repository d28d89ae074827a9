// Counts the outcomes of requests, and how long the callers waited.
import type { ApiAnswer } from '@spillway/infra/harness/api-client'
import { quantile } from './quantile.ts'

/**
 * The outcome of a request. `ok`: a result, or a registration; `ticket`: an answer to be fetched
 * later; `busy`: a refusal that says when to come back; `error`: everything else.
 */
export const outcomes = ['ok', 'ticket', 'busy', 'timeout', 'error'] as const
export type Outcome = (typeof outcomes)[number]

export function outcomeOf({ status, failure, body }: { status: number } & Partial<ApiAnswer>): Outcome {
  if (failure !== undefined) return failure
  if (status === 202) return 'ticket'
  if (status === 429 || (status === 503 && body?.code !== 'unavailable')) return 'busy'
  return (status >= 200 && status < 300) || status === 401 ? 'ok' : 'error'
}

export class Tally {
  readonly counts: Record<Outcome, number> = { ok: 0, ticket: 0, busy: 0, timeout: 0, error: 0 }
  /**
   * Times to a result (ms). A timed-out request counts with its wait, or the slowest server would
   * look fast. Refusals and tickets do not count.
   */
  readonly waitedMs: number[] = []

  record(outcome: Outcome, waitedMs: number): void {
    this.counts[outcome]++
    if (outcome === 'ok' || outcome === 'timeout') this.waitedMs.push(waitedMs)
  }

  /** Per cent of all requests. */
  share(...of: Outcome[]): number {
    const count = (some: readonly Outcome[]) => some.reduce((sum, outcome) => sum + this.counts[outcome], 0)
    const total = count(outcomes)
    return total === 0 ? 0 : (100 * count(of)) / total
  }
}

/** Median and p99, by names that begin so; empty without times, since 0 ms would be praise. */
export function percentiles(ms: readonly number[], begins = 'p'): Record<string, number> {
  const [p50, p99] = [quantile(ms, 0.5), quantile(ms, 0.99)]
  return p50 === undefined || p99 === undefined ? {} : { [`${begins}50Ms`]: p50, [`${begins}99Ms`]: p99 }
}
