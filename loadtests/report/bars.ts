// Two kinds of chart with a line for each contender: bars for what starts at zero, spans for latencies.
import * as Plot from '@observablehq/plot'
import type { Html } from '@spillway/client/storm/report/html'
import { show } from '../src/figures.ts'
import { chart, type Key, powersOfTen } from './chart.ts'

export interface Bar {
  label: string
  value: number
  color: string
}

const ROW_PX = 30
const NARROW_ROW_PX = 44
const LABEL_PX = 190

/** One bar for each label, with its value; bars of the same label are stacked, and without values. */
export function bars(title: string, unit: string, rows: readonly Bar[], keys: readonly Key[] = []): Html {
  const labels = [...new Set(rows.map(({ label }) => label))]
  const isStacked = labels.length < rows.length
  const lengthOf = (label: string) => rows.reduce((sum, row) => (row.label === label ? sum + row.value : sum), 0)
  const most = Math.max(...labels.map(lengthOf), 0)
  const draw = (narrow: boolean): Plot.PlotOptions => {
    const room = isStacked ? 1 : narrow ? 1.3 : 1.12
    const text = ({ value }: Bar) => show(value)
    const values = { y: 'label', x: 'value', text, dx: 5, dy: narrow ? 8 : 0, textAnchor: 'start' } as const
    return {
      ...frame(labels, narrow),
      x: { domain: [0, most * room || 1], label: unit, grid: true, ticks: narrow ? 4 : 8 },
      marks: [
        Plot.barX(rows, { y: 'label', x: 'value', fill: 'color', insetTop: narrow ? 20 : 5, insetBottom: 5 }),
        ...(isStacked ? [] : [Plot.text(rows, values)]),
        named(labels, narrow, 0),
      ],
    }
  }
  return chart(title, draw, keys)
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
  return chart(title, (narrow) => {
    const dy = narrow ? 8 : 0
    const line = { stroke: 'color', strokeWidth: 6, strokeLinecap: 'round', strokeOpacity: 0.45 } as const
    return {
      ...frame(labels, narrow),
      x: { type: 'log', domain, label: 'ms', grid: true, ticks: powersOfTen(...domain), tickFormat: show },
      marks: [
        Plot.ruleY(rows, { y: 'label', x1: 'p50Ms', x2: 'p99Ms', ...line, dy }),
        Plot.dot(rows, { y: 'label', x: 'p50Ms', fill: 'color', r: 4, dy }),
        Plot.dot(rows, { y: 'label', x: 'p95Ms', fill: 'var(--page)', stroke: 'color', r: 3, dy }),
        Plot.dot(rows, { y: 'label', x: 'p99Ms', fill: 'color', r: 5, dy }),
        Plot.text(rows, { y: 'label', x: 'p99Ms', text: ({ p99Ms }) => show(p99Ms), dx: 10, dy, textAnchor: 'start' }),
        named(labels, narrow, domain[0]),
      ],
    }
  })
}

/** A range for spans that several charts can share: whole powers of ten around all of them, and room for a number. */
export function domainOf(rows: readonly Span[]): [number, number] {
  const values = rows.flatMap(({ p50Ms, p99Ms }) => [p50Ms, p99Ms]).filter((value) => value > 0)
  const power = (value: number, round: (x: number) => number) => 10 ** round(Math.log10(value))
  return [power(Math.min(...values, 1), Math.floor), power(Math.max(...values, 10), Math.ceil) * 2]
}

/** On a phone the labels stand above their lines; elsewhere beside them. */
function named(labels: readonly string[], narrow: boolean, x: number): Plot.Markish {
  const same = (label: string) => label
  const text = Plot.text(labels, { y: same, x, text: same, dy: -12, textAnchor: 'start' })
  return narrow ? text : Plot.axisY({ label: null, tickSize: 0 })
}

function frame(labels: readonly string[], narrow: boolean): Plot.PlotOptions {
  return {
    height: labels.length * (narrow ? NARROW_ROW_PX : ROW_PX) + 70,
    marginLeft: narrow ? 10 : LABEL_PX,
    marginRight: narrow ? 30 : 50,
    y: { domain: labels, axis: null },
  }
}
