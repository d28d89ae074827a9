// Which kinds of addresses can be told apart: every two of a question are compared, and the table of that.
import { markdownTable } from 'markdown-table'
import type { Sample } from './ask.ts'
import { kolmogorovSmirnov } from './kolmogorov-smirnov.ts'

/** How likely it is that a run tells any two apart that are the same. */
export const LEVEL = 0.01

export interface Pair {
  question: string
  kinds: [string, string]
  /** How many answers were compared. */
  samples: [number, number]
  mediansMs: [number, number]
  /** Corrected for the number of all comparisons (Bonferroni). */
  p: number
  isToldApart: boolean
  /** Whether SECURITY says that they are alike. */
  isPromised: boolean
}

export function compareAll(samples: readonly Sample[]): Pair[] {
  const pairs = samples.flatMap((one, place) =>
    samples
      .slice(place + 1)
      .filter(({ question }) => question === one.question)
      .map((other) => [one, other] as const),
  )
  return pairs.map(([one, other]) => {
    const p = Math.min(1, kolmogorovSmirnov(one.timesMs, other.timesMs).p * pairs.length)
    return {
      question: one.question.name,
      kinds: [one.kind.name, other.kind.name],
      samples: [one.timesMs.length, other.timesMs.length],
      mediansMs: [median(one.timesMs), median(other.timesMs)],
      p,
      isToldApart: p < LEVEL,
      isPromised: one.kind.isPromised && other.kind.isPromised,
    }
  })
}

/** Those that break what SECURITY says. */
export function broken(pairs: readonly Pair[]): Pair[] {
  return pairs.filter(({ isToldApart, isPromised }) => isToldApart && isPromised)
}

/** Whether not even what is known to differ can be told apart: then a run says nothing about the rest. */
export function isBlind(pairs: readonly Pair[]): boolean {
  return pairs.every(({ isToldApart, isPromised }) => isPromised || !isToldApart)
}

const columns: [title: string, align: 'l' | 'r', of: (pair: Pair) => string][] = [
  ['question', 'l', ({ question }) => question],
  ['about', 'l', ({ kinds }) => kinds.join(' / ')],
  ['answers', 'r', ({ samples }) => samples.join(' / ')],
  ['medians, ms', 'r', ({ mediansMs }) => mediansMs.map((ms) => ms.toFixed(2)).join(' / ')],
  ['difference, ms', 'r', ({ mediansMs: [one, other] }) => (other - one).toFixed(2)],
  ['p', 'r', ({ p }) => (p < 0.001 ? '< 0.001' : p.toFixed(3))],
  [
    'told apart',
    'l',
    ({ isToldApart, isPromised }) => (isToldApart ? (isPromised ? 'YES' : 'yes, as SECURITY says') : 'no'),
  ],
]

export function table(pairs: readonly Pair[]): string {
  const cells = [columns.map(([title]) => title), ...pairs.map((pair) => columns.map(([, , of]) => of(pair)))]
  return markdownTable(cells, { align: columns.map(([, align]) => align) })
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length / 2
  return ((sorted[Math.ceil(middle) - 1] ?? 0) + (sorted[Math.floor(middle)] ?? 0)) / 2
}
