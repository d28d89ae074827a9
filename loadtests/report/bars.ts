// Two kinds of chart with a line for each contender: bars for what starts at zero, spans for latencies.
import * as Plot from '@observablehq/plot'
import type { Html } from '@spillway/storm/report/report'
import { show } from '../src/summary.ts'
import { chart, type Key, powersOfTen } from './chart.ts'

export interface Bar {
  label: string
  value: number
  color: string
}

const ROW_PX = 30
const LABEL_PX = 190

/** One bar for each label, with its value; bars of the same label are stacked, and without values. */
export function bars(title: string, unit: string, rows: readonly Bar[], keys: readonly Key[] = []): Html {
  const labels = [...new Set(rows.map(({ label }) => label))]
  const isStacked = labels.length < rows.length
  const lengthOf = (label: string) => rows.reduce((sum, row) => (row.label === label ? sum + row.value : sum), 0)
  const most = Math.max(...labels.map(lengthOf), 0)
  const values = { y: 'label', x: 'value', text: ({ value }: Bar) => show(value), dx: 5, textAnchor: 'start' } as const
  const options: Plot.PlotOptions = {
    ...frame(labels),
    x: { domain: [0, most * (isStacked ? 1 : 1.12) || 1], label: unit, grid: true, ticks: 8 },
    marks: [
      Plot.barX(rows, { y: 'label', x: 'value', fill: 'color', insetTop: 5, insetBottom: 5 }),
      ...(isStacked ? [] : [Plot.text(rows, values)]),
      Plot.axisY({ label: null, tickSize: 0 }),
    ],
  }
  return chart(title, options, keys)
}

export interface Span {
  label: string
  p50Ms: number
  p95Ms: number
  p99Ms: number
  color: string
}

/** From the median to p99 on a logarithmic scale, with a dot at p95. */
export function spans(title: string, rows: readonly Span[], domain: readonly [number, number]): Html {
  const labels = rows.map(({ label }) => label)
  const line = { stroke: 'color', strokeWidth: 6, strokeLinecap: 'round', strokeOpacity: 0.45 } as const
  return chart(title, {
    ...frame(labels),
    x: { type: 'log', domain, label: 'ms', grid: true, ticks: powersOfTen(...domain), tickFormat: show },
    marks: [
      Plot.ruleY(rows, { y: 'label', x1: 'p50Ms', x2: 'p99Ms', ...line }),
      Plot.dot(rows, { y: 'label', x: 'p50Ms', fill: 'color', r: 4 }),
      Plot.dot(rows, { y: 'label', x: 'p95Ms', fill: 'var(--page)', stroke: 'color', r: 3 }),
      Plot.dot(rows, { y: 'label', x: 'p99Ms', fill: 'color', r: 5 }),
      Plot.text(rows, { y: 'label', x: 'p99Ms', text: ({ p99Ms }) => show(p99Ms), dx: 10, textAnchor: 'start' }),
      Plot.axisY({ label: null, tickSize: 0 }),
    ],
  })
}

/** A range for spans that several charts can share: whole powers of ten around all of them, and room for a number. */
export function domainOf(rows: readonly Span[]): [number, number] {
  const values = rows.flatMap(({ p50Ms, p99Ms }) => [p50Ms, p99Ms]).filter((value) => value > 0)
  const power = (value: number, round: (x: number) => number) => 10 ** round(Math.log10(value))
  return [power(Math.min(...values, 1), Math.floor), power(Math.max(...values, 10), Math.ceil) * 2]
}

function frame(labels: readonly string[]): Plot.PlotOptions {
  return {
    height: labels.length * ROW_PX + 70,
    marginLeft: LABEL_PX,
    marginRight: 50,
    y: { domain: labels, axis: null },
  }
}
