// Which kinds of addresses can be told apart: every two of a question are compared, and the table of that.
import { randomInt } from 'node:crypto'
import { UserError } from '@spillway/infra/processes/command-line'
import { quantile } from '@spillway/infra/rig/quantile'
import { markdownTable } from 'markdown-table'
import type { Kind, Question } from './questions.ts'

/** How likely it is that a run tells any two apart that are the same. */
export const LEVEL = 0.01

type Pair = ReturnType<typeof compareAll>[number]

export function compareAll(samples: readonly Sample[]) {
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
      mediansMs: [median(one.timesMs), median(other.timesMs)] as const,
      /** Corrected for the number of all comparisons (Bonferroni). */
      p,
      isToldApart: p < LEVEL,
      /** Whether SECURITY says that they are alike. */
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
  return quantile(values, 0.5) ?? 0
}

/**
 * The two-sample Kolmogorov-Smirnov test: whether two samples can be of one distribution. It sees a shift as well as a tail or a second
 * peak, and assumes nothing about their shape.
 *
 * @returns the greatest distance between the two empirical distribution functions, 0 to 1; and the probability of such a distance or
 * a greater one if they are of one distribution, for samples of some dozens or more
 */
export function kolmogorovSmirnov(one: readonly number[], other: readonly number[]) {
  // Each sample adds its share to its own side: where all values up to one are counted, the sum is the distance there.
  const steps = [
    ...one.map((value) => ({ value, share: 1 / one.length })),
    ...other.map((value) => ({ value, share: -1 / other.length })),
  ].sort((a, b) => a.value - b.value)
  let distance = 0
  let sum = 0
  for (const [place, { value, share }] of steps.entries()) {
    sum += share
    const isTied = steps[place + 1]?.value === value
    if (!isTied) distance = Math.max(distance, Math.abs(sum))
  }
  const scale = Math.sqrt((one.length * other.length) / (one.length + other.length))
  return { distance, p: kolmogorovTail(distance * scale) }
}

/** Below this the tail is 1 except for 10^-5, and its series converges slowly. */
const LEAST = 0.3
const TERMS = 20

/** The probability that a value of Kolmogorov's distribution is greater: 2 Σ (-1)^(k-1) e^(-2k²x²). */
export function kolmogorovTail(x: number): number {
  if (x < LEAST) return 1
  let sum = 0
  for (let k = 1; k <= TERMS; k++) sum += (k % 2 === 1 ? 2 : -2) * Math.exp(-2 * (k * x) ** 2)
  return sum
}

// Asks in random turn, one question at a time, as a stranger on a quiet network would, and keeps the times of the answers.

/** The answers to a question about addresses of one kind. */
export interface Sample {
  question: Question
  kind: Kind
  /** Milliseconds of each answer. */
  timesMs: number[]
}

/** Of all answers, those whose time is not kept: connections are opened and code is compiled. */
const WARM_UP = 0.05
/** A machine that is busy elsewhere may answer some with a ticket, or not at all; the share of those that is borne. */
const ODD = 0.02

/**
 * Each time any of all kinds by chance, and not each in its turn: an answer may take longer for what the one before it left behind, so
 * each kind has to come after each other one, and after itself, as often as the others do.
 *
 * @param samples of each kind, about
 * @param explain the state of what is asked, told with a failure
 * @throws a UserError when answers have another status than their question's
 */
export async function askInTurn(
  questions: readonly Question[],
  { samples, stop, explain }: { samples: number; stop(): boolean; explain?(): Promise<string> },
): Promise<Sample[]> {
  const all = questions.flatMap((question) => question.kinds.map((kind) => new Answers(question, kind)))
  const [total, warmUp] = [all.length * samples, Math.ceil(all.length * samples * WARM_UP)]
  for (let asked = 0; asked < total + warmUp && !stop(); asked++) await all[randomInt(all.length)]?.add(asked >= warmUp)
  const odd = all.flatMap((answers) => answers.odd() ?? [])
  if (odd.length > 0) throw new UserError([...odd, (await explain?.()) ?? ''].join(' '))
  return all
}

class Answers implements Sample {
  readonly question: Question
  readonly kind: Kind
  readonly timesMs: number[] = []
  private asked = 0
  /** The other statuses, and after how many answers they came. */
  private readonly others: { status: number; after: number }[] = []

  constructor(question: Question, kind: Kind) {
    this.question = question
    this.kind = kind
  }

  async add(isKept: boolean): Promise<void> {
    const { status, tookMs } = await this.kind.ask(this.asked++)
    if (status !== this.question.status) this.others.push({ status, after: this.asked })
    else if (isKept) this.timesMs.push(tookMs)
  }

  /** A sentence where more answers than are borne had another status. */
  odd(): string | undefined {
    const [first] = this.others
    if (first === undefined || this.others.length <= this.asked * ODD) return undefined
    const statuses = [...new Set(this.others.map(({ status }) => status))].join(', ')
    return (
      `${this.question.name} (${this.kind.name}) was answered ${statuses} and not ${this.question.status}, ` +
      `${this.others.length} of ${this.asked} times, first at answer ${first.after}.`
    )
  }
}
