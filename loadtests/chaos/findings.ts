// What a scenario found.
import { quantile } from '@spillway/infra/rig/quantile'
import type { Visit } from '../load/visit.ts'

/**
 * The findings of a scenario: the ends of its requests, its figures, and every broken promise.
 * Lost, failed and falsely admitted logins break a promise, as do a missing recovery and a ratio
 * below its bound. Times are figures only.
 */
export class Findings {
  requests = 0
  succeeded = 0
  /** How many of all requests were given a ticket on the way. */
  ticketed = 0
  refused = 0
  /** Broken connections, time-outs, lost tickets, wrong verdicts, answers without a definition. */
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
    this.#countFailed(kinds)
    if (lost > 0) this.notes.push(`${lost} tickets came to nothing before a login anew`)
    return this
  }

  /** The requests that neither succeeded nor were refused have failed. */
  #countFailed(kinds: readonly string[]): void {
    this.failed = this.requests - this.succeeded - this.refused
    if (kinds.length > 0) this.notes.push(countBy(kinds))
  }

  /** The end of a scenario that counts its requests itself. */
  expectAllAnswered(failures: readonly string[]): void {
    this.#countFailed(failures)
    this.expect(this.failed === 0, `${this.failed} requests had no answer, or were refused without a reason`)
  }

  /** Notes a broken promise unless the condition holds. */
  expect(holds: boolean, broken: string): void {
    if (!holds) this.broken.push(broken)
  }

  /** Notes a figure, which breaks a promise unless the condition holds. */
  expectFigure(holds: boolean, figure: string): void {
    this.notes.push(figure)
    this.expect(holds, figure)
  }

  expectAllSucceeded(): void {
    this.expect(this.succeeded === this.requests, 'a login was refused or failed')
  }

  expectAllDefined(): void {
    this.expect(this.failed === 0, `${this.failed} requests had no defined answer, or lost their ticket`)
  }

  expectRefusals(): void {
    this.expect(this.refused > 0, 'nothing was refused, so nothing was tried')
  }
}

/** How often each came: `30 × 200, 2 × 503`. */
export function countBy(values: readonly (string | number)[]): string {
  const times = new Map<string | number, number>()
  for (const value of values) times.set(value, (times.get(value) ?? 0) + 1)
  return [...times].map(([value, count]) => `${count} × ${value}`).join(', ')
}

/** A quantile of the times of visits, in milliseconds; 0 without visits. */
export function tookAt(visits: readonly Pick<Visit, 'tookMs'>[], part: number): number {
  const tookMs = visits.map((visit) => visit.tookMs)
  return quantile(tookMs, part) ?? 0
}

/** Quartiles of the times of visits, in seconds. */
export function quartiles(visits: readonly Visit[], parts = [0.25, 0.5, 0.75]): string {
  return `quartiles ${parts.map((part) => (tookAt(visits, part) / 1_000).toFixed(1)).join(', ')} s`
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`
}
