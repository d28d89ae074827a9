// Five thousand users: the share of requests that ended each way.
import * as Plot from '@observablehq/plot'
import { outcomes } from '../../measure/tally.ts'
import type { ScenarioResult } from '../../src/results.ts'
import { type Summary, summarize } from '../../src/summary.ts'
import { bars } from '../bars.ts'
import { chart, legend } from '../chart.ts'
import { contenderColor, outcomeColors } from '../colors.ts'
import { type Html, html } from '../html.ts'
import { figure, number, quantity, section, titleOf, typicalRun } from '../section.ts'

export function stressSection(result: ScenarioResult): Html {
  const summaries = summarize(result).filter(({ figures }) => figures.perSecond)
  const of = (contender: string, variant = 'argon2id') =>
    summaries.find((summary) => summary.contender === contender && summary.variant === variant)
  const says =
    `Of the requests to Spillway ${quantity(figure(of('spillway'), 'answeredPercent'), '%')} were answered in time: with a verdict, ` +
    `a ticket, or when to come back. With hashing in the handler it was ${quantity(figure(of('in-process'), 'answeredPercent'), '%')}. ` +
    `The pipeline alone, without a hash and on all cores, gave ${quantity(figure(of('spillway', 'token'), 'perSecond'), 'verdicts a second')}.`
  const throughput = summaries.flatMap((summary) => {
    const value = figure(summary, 'perSecond')
    return value === undefined || summary.variant === 'token'
      ? []
      : [{ label: titleOf(summary.contender), value, color: contenderColor(summary.contender) }]
  })
  return section(result, says, [
    html`<h4>How requests ended</h4>`,
    legend(outcomes.map((outcome) => outcomeColors[outcome])),
    shares(summaries),
    html`<h4>Verdicts a second meanwhile</h4>`,
    bars('Verdicts a second with five thousand users', 'verdicts a second', throughput),
  ])
}

function shares(summaries: readonly Summary[]): Html {
  const labels = summaries.map(labelOf)
  const rows = summaries.flatMap((summary) => {
    const [counts = {}] = typicalRun(summary, 'perSecond')?.series.outcomes ?? []
    const total = outcomes.reduce((sum, outcome) => sum + number(counts[outcome]), 0)
    return outcomes.map((outcome) => ({
      label: labelOf(summary),
      percent: (100 * number(counts[outcome])) / total,
      color: outcomeColors[outcome].color,
    }))
  })
  return chart('How requests ended, in per cent', ({ narrow }) => ({
    height: labels.length * (narrow ? 44 : 30) + 70,
    marginLeft: narrow ? 10 : 190,
    x: { domain: [0, 100], label: '% of requests', ticks: 5 },
    y: { domain: labels, axis: null },
    marks: [
      Plot.barX(rows, { y: 'label', x: 'percent', fill: 'color', insetTop: narrow ? 20 : 5, insetBottom: 5 }),
      narrow
        ? Plot.text(labels, { y: (label) => label, x: 0, text: (label) => label, dy: -12, textAnchor: 'start' })
        : Plot.axisY({ label: null, tickSize: 0 }),
    ],
  }))
}

function labelOf({ contender, variant }: Summary): string {
  return variant === 'token' ? 'Spillway, no hash' : titleOf(contender)
}
