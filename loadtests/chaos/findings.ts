// What a scenario found: what came of the requests, the figures of the table, and every promise that was broken.
import type { Visit } from './traffic/visit.ts'

export interface Findings {
  requests: number
  succeeded: number
  /** How many of them all were given a ticket on the way. */
  ticketed: number
  refused: number
  /** Broken connections, time-outs, lost tickets, wrong verdicts, and whatever else is no answer. */
  failed: number
  /** How much longer the slowest success took than those before the fault, in milliseconds. */
  worstExtraMs?: number
  /** From the end of the fault until every visit went well again, in milliseconds. */
  recoveryMs?: number
  /** Further figures, a few words each. */
  notes: string[]
  /** One sentence for each promise that did not hold. */
  broken: string[]
}

/** Findings without requests, to be added to. */
export function newFindings(): Findings {
  return { requests: 0, succeeded: 0, ticketed: 0, refused: 0, failed: 0, notes: [], broken: [] }
}

/** Counts visits, and names how the failed ones ended. */
export function countVisits(visits: readonly Visit[]): Findings {
  const count = (...ends: Visit['end'][]) => visits.filter(({ end }) => ends.includes(end)).length
  const failed = visits.filter(({ end }) => end !== 'verdict' && end !== 'refused')
  const kinds = new Map<string, number>()
  for (const { end, detail } of failed) kinds.set(`${end}: ${detail}`, (kinds.get(`${end}: ${detail}`) ?? 0) + 1)
  return {
    requests: visits.length,
    succeeded: count('verdict'),
    ticketed: visits.filter(({ ticketed }) => ticketed).length,
    refused: count('refused'),
    failed: failed.length,
    notes: [...kinds].map(([kind, times]) => `${times} × ${kind}`),
    broken: [],
  }
}

/** Notes a broken promise unless the condition holds. */
export function expect(findings: Findings, holds: boolean, broken: string): void {
  if (!holds) findings.broken.push(broken)
}
