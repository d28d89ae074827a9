// A spike over time: how many arrived when and how it ended for them, and how many were waiting.
import * as Plot from '@observablehq/plot'
import type { Html } from '@spillway/client/storm/report/html'
import { outcomes } from '../../measure/tally.ts'
import type { Run, ScenarioResult } from '../../src/results.ts'
import { summarize } from '../../src/summary.ts'
import { chart, legend, powersOfTen } from '../chart.ts'
import { contenderColor, outcomeColors } from '../colors.ts'
import { figure, number, quantity, section, titleOf, typicalRun } from '../section.ts'

export function spikeSection(result: ScenarioResult): Html {
  const summaries = summarize(result).filter(({ figures }) => figures.answeredPercent)
  const lost = summaries.map(
    (summary) =>
      `${titleOf(summary.contender)}: ${quantity(figure(summary, 'failedPercent'), '%')} of users got an error or no answer in ten seconds`,
  )
  const runs = summaries.flatMap((summary) => typicalRun(summary, 'answeredPercent') ?? [])
  return section(result, `${lost.join('; ')}.`, [
    legend(outcomes.map((outcome) => outcomeColors[outcome])),
    ...runs.map(arrivals),
    depths(runs),
    ...runs.map(waits),
  ])
}

function arrivals({ contender, series }: Run): Html {
  const rows = (series.bySecond ?? []).flatMap((counts) =>
    outcomes.map((outcome) => ({
      second: number(counts.second),
      users: number(counts[outcome]),
      color: outcomeColors[outcome].color,
    })),
  )
  return chart(`${titleOf(contender)}: users by the second they arrived in`, (narrow) => ({
    height: narrow ? 180 : 220,
    x: { label: 'seconds', ticks: narrow ? 5 : 10 },
    y: { label: 'users', grid: true },
    marks: [
      Plot.rectY(rows, { x1: 'second', x2: ({ second }) => second + 1, y: 'users', fill: 'color', insetLeft: 1 }),
    ],
  }))
}

function depths(runs: readonly Run[]): Html {
  const keys = runs.map(({ contender }) => ({ title: titleOf(contender), color: contenderColor(contender) }))
  const rows = runs.flatMap(({ contender, series }) =>
    (series.depth ?? []).map((row) => ({ contender, color: contenderColor(contender), ...row })),
  )
  const inQueue = rows.filter((row) => 'queued' in row)
  const line = { x: 'second', z: 'contender', stroke: 'color', sort: 'second' }
  const draw = (narrow: boolean): Plot.PlotOptions => ({
    height: narrow ? 200 : 260,
    marginLeft: 55,
    x: { label: 'seconds', ticks: narrow ? 5 : 10 },
    y: { label: 'at a time', grid: true },
    marks: [
      Plot.line(rows, { ...line, y: 'open', strokeWidth: 2 }),
      Plot.line(inQueue, { ...line, y: 'queued', strokeDasharray: '4 3' }),
    ],
  })
  return chart('Requests open (and, dashed, jobs in the queue)', draw, keys)
}

function waits({ contender, series }: Run): Html {
  const rows = (series.waits ?? []).map(({ dueS, waitedMs, outcome }) => ({
    dueS: number(dueS),
    waitedS: Math.max(number(waitedMs), 1) / 1_000,
    color: outcomeColors[outcomes.find((one) => one === outcome) ?? 'error'].color,
  }))
  return chart(`${titleOf(contender)}: how long each user waited`, (narrow) => ({
    height: narrow ? 200 : 240,
    marginLeft: 55,
    x: { label: 'arrived at second', ticks: narrow ? 5 : 10 },
    y: { type: 'log', label: 'waited, seconds', grid: true, ticks: powersOfTen(0.001, 100), tickFormat: String },
    marks: [Plot.dot(rows, { x: 'dueS', y: 'waitedS', fill: 'color', r: narrow ? 1.5 : 2, fillOpacity: 0.7 })],
  }))
}
