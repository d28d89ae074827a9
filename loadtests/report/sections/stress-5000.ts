// Five thousand users: the share of requests that ended each way.
import { outcomes } from '../../measure/tally.ts'
import type { ScenarioResult } from '../../src/results.ts'
import { type Summary, summarize } from '../../src/summary.ts'
import { bars } from '../bars.ts'
import { outcomeColors } from '../colors.ts'
import { barsOf, figure, figureOf, number, quantity, type Section, section, titleOf, typicalRows } from '../section.ts'

export function stressSection(result: ScenarioResult): Section {
  const summaries = summarize(result).filter(({ figures }) => figures.perSecond)
  const hashing = summaries.filter(({ variant }) => variant !== 'token')
  const answered = (name: string) => quantity(figureOf(hashing, name, 'answeredPercent'), '%')
  const pipeline = summaries.find(({ variant }) => variant === 'token')
  const says =
    `Of the requests to Spillway ${answered('spillway')} were answered in time: with a verdict, ` +
    `a ticket, or when to come back. With hashing in the handler it was ${answered('in-process')}. ` +
    `The pipeline alone, without a hash and on all cores, gave ${quantity(figure(pipeline, 'perSecond'), 'verdicts a second')}.`
  const keys = outcomes.map((outcome) => outcomeColors[outcome])
  return section(result, says, [
    bars('How requests ended', '% of requests', summaries.flatMap(shares), keys),
    bars('Verdicts a second meanwhile', 'verdicts a second', barsOf(hashing, 'perSecond')),
  ])
}

function shares(summary: Summary) {
  const [counts = {}] = typicalRows(summary, 'perSecond', 'outcomes')
  const total = outcomes.reduce((sum, outcome) => sum + number(counts[outcome]), 0)
  return outcomes.map((outcome) => ({
    label: summary.variant === 'token' ? 'Spillway, no hash' : titleOf(summary.contender),
    value: (100 * number(counts[outcome])) / total,
    color: outcomeColors[outcome].color,
  }))
}
