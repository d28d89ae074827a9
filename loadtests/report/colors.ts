// The colours of contenders and outcomes. Spillway and the contender that it is compared with stand out.
import type { Outcome } from '../measure/tally.ts'

export function contenderColor(name: string): string {
  if (name === 'spillway') return 'var(--accent)'
  return name === 'in-process' ? 'var(--against)' : 'var(--others)'
}

/** From best to worst. */
export const outcomeColors: Record<Outcome, { title: string; color: string }> = {
  ok: { title: 'answered', color: 'var(--ok)' },
  ticket: { title: 'has a ticket', color: 'var(--ticket)' },
  busy: { title: 'told when to come back', color: 'var(--busy)' },
  timeout: { title: 'no answer in ten seconds', color: 'var(--timeout)' },
  error: { title: 'error', color: 'var(--error)' },
}

/** For parts of a whole that have no order of merit. */
export const partColors = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((number) => `var(--part-${number})`)
