// A spike over time: who arrived when and how it ended for them, and how many were waiting.
import * as Plot from '@observablehq/plot'
import { type Outcome, outcomes } from '../../measure/tally.ts'
import type { Run, ScenarioResult } from '../../src/results.ts'
import { summarize } from '../../src/summary.ts'
import { chart, legend, powersOfTen } from '../chart.ts'
import { contenderColor, outcomeColors } from '../colors.ts'
import { type Html, html } from '../html.ts'
import { figure, number, quantity, section, titleOf, typicalRun } from '../section.ts'

export function spikeSection(result: ScenarioResult): Html {
  const summaries = summarize(result).filter(({ figures }) => figures.answeredPercent)
  const says = summaries
    .map(
      (summary) =>
        `${titleOf(summary.contender)}: ${quantity(figure(summary, 'failedPercent'), '%')} of users got an error or no answer in ten seconds`,
    )
    .join('; ')
  const runs = summaries.flatMap((summary) => typicalRun(summary, 'answeredPercent') ?? [])
  return section(result, `${says}.`, [
    legend(outcomes.map((outcome) => outcomeColors[outcome])),
    ...runs.map((run) => html`<h4>${titleOf(run.contender)}: users by the second they arrived in</h4>${arrivals(run)}`),
    html`<h4>Requests open (and, dashed, jobs in the queue)</h4>`,
    legend(runs.map(({ contender }) => ({ title: titleOf(contender), color: contenderColor(contender) }))),
    depths(runs),
    ...runs.map((run) => html`<h4>${titleOf(run.contender)}: how long each user waited</h4>${waits(run)}`),
  ])
}

function arrivals(run: Run): Html {
  const rows = (run.series.bySecond ?? []).flatMap((counts) =>
    outcomes.map((outcome) => ({
      second: number(counts.second),
      users: number(counts[outcome]),
      color: outcomeColors[outcome].color,
    })),
  )
  return chart(`${titleOf(run.contender)}: users a second by outcome`, ({ narrow }) => ({
    height: narrow ? 180 : 220,
    x: { label: 'seconds', ticks: narrow ? 5 : 10 },
    y: { label: 'users', grid: true },
    marks: [
      Plot.rectY(rows, { x1: 'second', x2: ({ second }) => second + 1, y: 'users', fill: 'color', insetLeft: 1 }),
    ],
  }))
}

function depths(runs: readonly Run[]): Html {
  const rows = runs.flatMap((run) =>
    (run.series.depth ?? []).map(({ second, open, queued }) => ({
      contender: run.contender,
      color: contenderColor(run.contender),
      second: number(second),
      open: number(open),
      queued,
    })),
  )
  const inQueue = rows.filter(({ queued }) => queued !== undefined)
  const line = { x: 'second', z: 'contender', stroke: 'color', sort: 'second' }
  return chart('Requests open, and jobs in the queue', ({ narrow }) => ({
    height: narrow ? 200 : 260,
    marginLeft: 55,
    x: { label: 'seconds', ticks: narrow ? 5 : 10 },
    y: { label: 'at a time', grid: true },
    marks: [
      Plot.line(rows, { ...line, y: 'open', strokeWidth: 2 }),
      Plot.line(inQueue, { ...line, y: 'queued', strokeDasharray: '4 3' }),
    ],
  }))
}

function waits(run: Run): Html {
  const rows = (run.series.waits ?? []).map(({ dueS, waitedMs, outcome }) => ({
    dueS: number(dueS),
    waitedS: Math.max(number(waitedMs), 1) / 1_000,
    color: outcomeColors[asOutcome(outcome)].color,
  }))
  return chart(`${titleOf(run.contender)}: seconds each user waited`, ({ narrow }) => ({
    height: narrow ? 200 : 240,
    marginLeft: 55,
    x: { label: 'arrived at second', ticks: narrow ? 5 : 10 },
    y: { type: 'log', label: 'waited, seconds', grid: true, ticks: powersOfTen(0.001, 100), tickFormat: String },
    marks: [Plot.dot(rows, { x: 'dueS', y: 'waitedS', fill: 'color', r: narrow ? 1.5 : 2, fillOpacity: 0.7 })],
  }))
}

function asOutcome(text: number | string | undefined): Outcome {
  return outcomes.find((outcome) => outcome === text) ?? 'error'
}
