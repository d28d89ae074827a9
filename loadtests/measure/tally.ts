// Counts the outcomes of requests, second by second, and how long the callers waited.
import { outcomeOf as requestOutcome } from '@spillway/api/outcomes'
import type { ApiAnswer } from '@spillway/infra/rig/api-client'
import { quantile } from '@spillway/infra/rig/quantile'

/**
 * The outcome of a request. `ok`: a verdict, or a registration; `ticket`: an answer to be fetched
 * later; `busy`: a refusal that says when to come back; `error`: everything else.
 */
export const outcomes = ['ok', 'ticket', 'busy', 'timeout', 'error'] as const
export type Outcome = (typeof outcomes)[number]
export type Counts = Record<Outcome, number>

/** The outcome of an answer by the gateway's list; without an answer a timeout or an error. */
export function outcomeOf({ status, failure, body }: Pick<ApiAnswer, 'status'> & Partial<ApiAnswer>): Outcome {
  if (failure !== undefined) return failure
  const outcome = requestOutcome(status, body?.code)
  if (outcome === 'ticket') return 'ticket'
  if (outcome === 'refused') return 'busy'
  return (outcome === 'answered' && status >= 200 && status < 300) || status === 401 ? 'ok' : 'error'
}

export class Tally {
  readonly counts = noCounts()
  readonly bySecond: Counts[] = []
  /** Answers by their status, where it was told; 0 for requests without an answer. */
  readonly statuses: Record<number, number> = {}
  /**
   * Times to a verdict (ms). A timed-out request counts with its wait, or the slowest server would
   * look fast. Refusals and tickets do not count.
   */
  readonly waitedMs: number[] = []

  /** @param second the second of the run it is counted under */
  record(outcome: Outcome, waitedMs: number, second: number, status?: number): void {
    this.counts[outcome]++
    if (status !== undefined) this.statuses[status] = (this.statuses[status] ?? 0) + 1
    while (this.bySecond.length <= second) this.bySecond.push(noCounts())
    const counts = this.bySecond[second]
    if (counts) counts[outcome]++
    if (outcome === 'ok' || outcome === 'timeout') this.waitedMs.push(waitedMs)
  }

  /** Per cent of all requests. */
  share(...of: Outcome[]): number {
    const count = (some: readonly Outcome[]) => some.reduce((sum, outcome) => sum + this.counts[outcome], 0)
    const total = count(outcomes)
    return total === 0 ? 0 : (100 * count(of)) / total
  }
}

function noCounts(): Counts {
  return { ok: 0, ticket: 0, busy: 0, timeout: 0, error: 0 }
}

/** Median and p99, by names that begin so; empty without times, since 0 ms would be praise. */
export function percentiles(ms: readonly number[], begins = 'p'): Record<string, number> {
  const found = [50, 99].flatMap((each) => {
    const value = quantile(ms, each / 100)
    return value === undefined ? [] : [[`${begins}${each}Ms`, value] as const]
  })
  return Object.fromEntries(found)
}
