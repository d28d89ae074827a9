// The parts of every section of the report: its question, a sentence on the figures, its charts, and the failures.

import { type Html, html } from '@spillway/client/storm/report/html'
import { contenders } from '../contenders/contenders.ts'
import { scenarios } from '../scenarios/scenarios.ts'
import { show } from '../src/figures.ts'
import type { Row, Run, ScenarioResult } from '../src/results.ts'
import type { Summary } from '../src/summary.ts'
import type { Bar } from './bars.ts'
import { contenderColor } from './colors.ts'

/** @param says in one or two sentences what the charts show */
export function section(result: ScenarioResult, says: string, charts: readonly (Html | undefined)[]): Html {
  const scenario = scenarios.find(({ name }) => name === result.name)
  const settings = Object.entries(result.settings).map(([name, value]) => `${name} ${value}`)
  return html`<section id="${result.name}">
    <h2>${scenario?.title ?? result.name}</h2>
    <p class="question">${scenario?.question}</p>
    <p>${says}</p>
    ${charts}
    ${failures(result.runs)}
    <p class="settings">${result.name}: ${settings.join(' · ')}</p>
  </section>`
}

function failures(runs: readonly Run[]): Html | undefined {
  const failed = runs.filter(({ failure }) => failure !== undefined)
  if (failed.length === 0) return undefined
  const lines = failed.map(
    ({ contender, variant, failure }) => html`<li>${titleOf(contender)}, ${variant}: ${failure}</li>`,
  )
  return html`<div class="failures"><p>Without figures:</p><ul>${lines}</ul></div>`
}

/** A contender's title; other names as they are. */
export function titleOf(name: string): string {
  return contenders.find((contender) => contender.name === name)?.title ?? name
}

/** The median of a figure; undefined when there is none. */
export function figure(summary: Summary | undefined, name: string): number | undefined {
  return summary?.figures[name]?.median
}

/** The median of a contender's figure; undefined when there is none. */
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
