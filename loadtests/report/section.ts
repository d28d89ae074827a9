// A section of the report: its question, a sentence on the figures, its charts, and the failures.
import type { Html } from '@spillway/storm/report/report'
import { contenders } from '../contenders/contenders.ts'
import { scenarios } from '../scenarios/scenarios.ts'
import type { Row, Run, ScenarioResult } from '../src/results.ts'
import { type Summary, show } from '../src/summary.ts'
import { type Bar, contenderColor } from './chart.ts'

export interface Section {
  name: string
  title: string
  question: string
  /** One or two sentences on what the charts show. */
  says: string
  charts: readonly Html[]
  /** One sentence for each run without figures. */
  failures: readonly string[]
  settings: string
}

export function section({ name, settings, runs }: ScenarioResult, says: string, charts: readonly Html[]): Section {
  const { title = name, question = '' } = scenarios.find((scenario) => scenario.name === name) ?? {}
  return {
    ...{ name, title, question, says, charts },
    failures: runs.flatMap(({ contender, variant, failure }) =>
      failure === undefined ? [] : [`${titleOf(contender)}, ${variant}: ${failure}`],
    ),
    settings: Object.entries(settings)
      .map(([setting, value]) => `${setting} ${value}`)
      .join(' · '),
  }
}

/** A contender's title; other names as they are. */
export function titleOf(name: string): string {
  return contenders.find((contender) => contender.name === name)?.title ?? name
}

/** The median of a figure; undefined without one. */
export function figure(summary: Summary | undefined, name: string): number | undefined {
  return summary?.figures[name]?.median
}

/** The median of a contender's figure; undefined without one. */
export function figureOf(summaries: readonly Summary[], contender: string, name: string): number | undefined {
  return figure(
    summaries.find((summary) => summary.contender === contender),
    name,
  )
}

/** The medians of a figure as bars, those of contenders without it left out. */
export function barsOf(summaries: readonly Summary[], name: string): Bar[] {
  return summaries.flatMap((summary) => {
    const { contender } = summary
    const value = figure(summary, name)
    return value === undefined
      ? []
      : [{ label: titleOf(contender), value: Math.max(value, 0), color: contenderColor(contender) }]
  })
}

/** The rows of a plot, from the repeat whose figure lies in the middle. */
export function typicalRows(summary: Summary | undefined, name: string, series: string): Row[] {
  return typicalRun(summary, name)?.series[series] ?? []
}

/** Among repeats, the one whose figure lies in the middle: its curve is the one to draw. */
export function typicalRun(summary: Summary | undefined, name: string): Run | undefined {
  const runs = summary?.runs.filter((run) => run.failure === undefined) ?? []
  const middle = figure(summary, name) ?? 0
  const distance = (run: Run) => Math.abs((run.figures[name] ?? 0) - middle)
  return runs.toSorted((a, b) => distance(a) - distance(b))[0]
}

/** `12.3 ms`, or a dash for what was not measured. */
export function quantity(value: number | undefined, unit: string): string {
  return value === undefined ? '–' : `${show(value)} ${unit}`
}

/** A number from a row, which may hold text as well. */
export function number(value: number | string | undefined): number {
  return typeof value === 'number' ? value : 0
}
