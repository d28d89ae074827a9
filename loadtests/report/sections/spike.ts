// A spike over time: how many arrived when and how it ended for them, and how many were waiting.
import * as Plot from '@observablehq/plot'
import type { Html } from '@spillway/storm/report/report'
import { outcomes } from '../../measure/tally.ts'
import type { Run, ScenarioResult } from '../../src/results.ts'
import { summarize } from '../../src/summary.ts'
import { chart, contenderColor, outcomeColors, powersOfTen } from '../chart.ts'
import { figure, number, quantity, type Section, section, titleOf, typicalRun } from '../section.ts'

export function spikeSection(result: ScenarioResult): Section {
  const summaries = summarize(result).filter(({ figures }) => figures.answeredPercent)
  const lost = summaries.map(
    (summary) =>
      `${titleOf(summary.contender)}: ${quantity(figure(summary, 'failedPercent'), '%')} of users got an error or no answer in ten seconds`,
  )
  const runs = summaries.flatMap((summary) => typicalRun(summary, 'answeredPercent') ?? [])
  return section(result, `${lost.join('; ')}.`, [...runs.map(arrivals), depths(runs), ...runs.map(waits)])
}

function arrivals({ contender, series }: Run): Html {
  const rows = (series.bySecond ?? []).flatMap((counts) =>
    outcomes.map((outcome) => ({
      second: number(counts.second),
      users: number(counts[outcome]),
      color: outcomeColors[outcome].color,
    })),
  )
  const options: Plot.PlotOptions = {
    height: 220,
    x: { label: 'seconds', ticks: 10 },
    y: { label: 'users', grid: true },
    marks: [
      Plot.rectY(
        rows.filter(({ users }) => users > 0),
        { x1: 'second', x2: ({ second }) => second + 1, y: 'users', fill: 'color', insetLeft: 1 },
      ),
    ],
  }
  const keys = outcomes.map((outcome) => outcomeColors[outcome])
  return chart(`${titleOf(contender)}: users by the second they arrived in`, options, keys)
}

function depths(runs: readonly Run[]): Html {
  const keys = runs.map(({ contender }) => ({ title: titleOf(contender), color: contenderColor(contender) }))
  const rows = runs.flatMap(({ contender, series }) =>
    (series.depth ?? []).map((row) => ({ contender, color: contenderColor(contender), ...row })),
  )
  const inQueue = rows.filter((row) => 'queued' in row)
  const line = { x: 'second', z: 'contender', stroke: 'color', sort: 'second' }
  const options: Plot.PlotOptions = {
    height: 260,
    marginLeft: 55,
    x: { label: 'seconds', ticks: 10 },
    y: { label: 'at a time', grid: true },
    marks: [
      Plot.line(rows, { ...line, y: 'open', strokeWidth: 2 }),
      Plot.line(inQueue, { ...line, y: 'queued', strokeDasharray: '4 3' }),
    ],
  }
  return chart('Requests open (and, dashed, jobs in the queue)', options, keys)
}

function waits({ contender, series }: Run): Html {
  const rows = (series.waits ?? []).map(({ dueS, waitedMs, outcome }) => ({
    dueS: number(dueS),
    waitedS: Math.max(number(waitedMs), 1) / 1_000,
    color: outcomeColors[outcomes.find((one) => one === outcome) ?? 'error'].color,
  }))
  return chart(`${titleOf(contender)}: how long each user waited`, {
    height: 240,
    marginLeft: 55,
    x: { label: 'arrived at second', ticks: 10 },
    y: {
      type: 'log',
      domain: [0.01, 100],
      clamp: true,
      label: 'waited, seconds',
      grid: true,
      ticks: powersOfTen(0.01, 100),
      tickFormat: String,
    },
    marks: [Plot.dot(rows, { x: 'dueS', y: 'waitedS', fill: 'color', r: 2, fillOpacity: 0.7 })],
  })
}
