// What a scenario found.
import type { Visit } from '../load/visit.ts'

/**
 * The findings of a scenario: the ends of the requests, the figures of the table, and every promise that was broken. What is lost, fails, is
 * let in or does not recover breaks a promise, or a ratio to what was measured beside it; a time does not: it is a figure.
 */
export class Findings {
  requests = 0
  succeeded = 0
  /** How many of all requests were given a ticket on the way. */
  ticketed = 0
  refused = 0
  /** Broken connections, time-outs, lost tickets, wrong verdicts, and any other answer without a definition. */
  failed = 0
  /** How much longer the slowest success took than those before the fault, in milliseconds. */
  worstExtraMs?: number
  /** From the end of the fault until every visit went well again, in milliseconds. */
  recoveryMs?: number
  /** Further figures, a few words each. */
  readonly notes: string[] = []
  /** One sentence for each promise that did not hold. */
  readonly broken: string[] = []

  /** Counts visits, and notes how the failed ones ended. */
  count(visits: readonly Visit[]): this {
    const kinds: string[] = []
    let lost = 0
    for (const { end, ticketed, ticketsLost, detail } of visits) {
      lost += ticketsLost
      this.requests++
      if (ticketed) this.ticketed++
      if (end === 'verdict') this.succeeded++
      else if (end === 'refused') this.refused++
      else kinds.push(`${end}: ${detail}`)
    }
    this.failed = this.requests - this.succeeded - this.refused
    if (lost > 0) this.notes.push(`${lost} tickets came to nothing before a login anew`)
    if (kinds.length > 0) this.notes.push(countBy(kinds))
    return this
  }

  /** Notes a broken promise unless the condition holds. */
  expect(holds: boolean, broken: string): void {
    if (!holds) this.broken.push(broken)
  }

  expectAllSucceeded(): void {
    this.expect(this.succeeded === this.requests, 'a login was refused or failed')
  }
}

/** How often each came: `30 × 200, 2 × 503`. */
export function countBy(values: readonly (string | number)[]): string {
  const times = new Map<string | number, number>()
  for (const value of values) times.set(value, (times.get(value) ?? 0) + 1)
  return [...times].map(([value, count]) => `${count} × ${value}`).join(', ')
}
