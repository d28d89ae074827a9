// Counts the outcomes of requests, second by second, and how long the callers waited.
import type { Answer } from '@spillway/local/rig/api-client'
import { Latency } from './latency.ts'

/**
 * The outcome of a request. `ok` is a verdict (a session, a registration, or a clear no); `ticket` an answer to be fetched
 * later; `busy` a refusal that says when to come back; `error` everything else, a dropped connection included.
 */
export const outcomes = ['ok', 'ticket', 'busy', 'timeout', 'error'] as const
export type Outcome = (typeof outcomes)[number]
export type Counts = Record<Outcome, number>

/** The outcome an HTTP status stands for, or the lack of one. */
export function outcomeOf({ status, failure }: Pick<Answer, 'status'> & Partial<Answer>): Outcome {
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
