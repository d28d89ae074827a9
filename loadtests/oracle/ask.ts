// Asks in random turn, one question at a time, as a stranger on a quiet network would, and keeps the times of the answers.
import { randomInt } from 'node:crypto'
import { UserError } from '@spillway/local/processes/command-line'
import type { Kind, Question } from './questions.ts'

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
 * @throws a UserError when answers have another status than their question's
 */
export async function askInTurn(
  questions: readonly Question[],
  { samples, stop }: { samples: number; stop(): boolean },
): Promise<Sample[]> {
  const all = questions.flatMap((question) => question.kinds.map((kind) => new Answers(question, kind)))
  const [total, warmUp] = [all.length * samples, Math.ceil(all.length * samples * WARM_UP)]
  for (let asked = 0; asked < total + warmUp && !stop(); asked++) await all[randomInt(all.length)]?.add(asked >= warmUp)
  for (const answers of all) answers.check()
  return all
}

class Answers implements Sample {
  readonly question: Question
  readonly kind: Kind
  readonly timesMs: number[] = []
  private asked = 0
  private odd: number[] = []

  constructor(question: Question, kind: Kind) {
    this.question = question
    this.kind = kind
  }

  async add(isKept: boolean): Promise<void> {
    const { status, tookMs } = await this.kind.ask(this.asked++)
    if (status !== this.question.status) this.odd.push(status)
    else if (isKept) this.timesMs.push(tookMs)
  }

  check(): void {
    if (this.odd.length <= this.asked * ODD) return
    const [statuses, { name, status }] = [[...new Set(this.odd)].join(', '), this.question]
    throw new UserError(
      `${name} (${this.kind.name}) was answered ${statuses} and not ${status}, ${this.odd.length} of ${this.asked} times.`,
    )
  }
}
