// Charts by Observable Plot, drawn here into static SVG: they need no script where they are read, print as they look, and
// take their colours from the page's style, so that light and dark are one drawing. Plot needs a document to draw into;
// linkedom is one without a browser.
import * as Plot from '@observablehq/plot'
import { Html, html } from '@spillway/storm/report/report'
import { parseHTML } from 'linkedom'
import { titleOf } from '../contenders/contenders.ts'
import type { Outcome } from '../measure/tally.ts'
import { figure, type Summary, show } from '../src/summary.ts'

const { document } = parseHTML('<!doctype html><html><body></body></html>')

const WIDTH_PX = 840

/** The meaning of a colour. */
export interface Key {
  title: string
  color: string
}

/** A chart under its title, which is also what is read to those who cannot see it. */
export function chart(title: string, options: Plot.PlotOptions, keys: readonly Key[] = []): Html {
  const svg = Plot.plot({
    marginBottom: 46,
    ...options,
    width: WIDTH_PX,
    document,
    className: 'plot',
    ariaLabel: title,
    style: { fontSize: '12px' },
  })
  return html`<h4>${title}</h4>${legend(keys)}<div class="chart">${new Html(small(svg.outerHTML))}</div>`
}

/**
 * Without what takes half of the size and is not seen: fractions of a pixel, ticks beside grid lines, names of parts, and a style that the
 * page has once.
 */
function small(svg: string): string {
  return svg
    .replace(/<style>.*?<\/style>/s, '')
    .replaceAll(/<g [^>]*aria-label="[xy]-axis tick">.*?<\/g>/g, '')
    .replaceAll(/(?<=<g[^>]*) (aria-label|font-variant)="[^"]*"/g, '')
    .replaceAll(/="[^"]*"/g, (attribute) =>
      attribute.replaceAll(/-?\d+\.\d{3,}/g, (value) => String(Math.round(Number(value)))),
    )
}

/** The powers of ten in a range, for logarithmic axes: the lines between them would only be grey. */
export function powersOfTen(least: number, most: number): number[] {
  const first = Math.ceil(Math.log10(least))
  return Array.from({ length: Math.max(Math.floor(Math.log10(most)) - first + 1, 0) }, (_, n) => 10 ** (first + n))
}

/** The meanings of the colours; undefined without any. */
export function legend(keys: readonly Key[]): Html | undefined {
  if (keys.length === 0) return undefined
  return html`<p class="legend">${keys.map(({ title, color }) => html`<span><i style="background:${color}"></i>${title}</span>`)}</p>`
}

/** The colours of contenders and outcomes. Spillway and the contender that it is compared with stand out. */
export function contenderColor(name: string): string {
  if (name === 'spillway') return 'var(--accent)'
  return name === 'in-process' ? 'var(--against)' : 'var(--others)'
}

/** From best to worst. */
export const outcomeColors: Record<Outcome, { title: string; color: string }> = {
  ok: { title: 'answered', color: 'var(--ok)' },
  ticket: { title: 'has a ticket', color: 'var(--ticket)' },
  busy: { title: 'told when to come back', color: 'var(--busy)' },
  timeout: { title: 'no answer in ten seconds', color: 'var(--timeout)' },
  error: { title: 'error', color: 'var(--error)' },
}

/** For parts of a whole that have no order of merit. */
export const partColors = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((number) => `var(--part-${number})`)

// Two kinds of chart with a line for each contender: bars for what starts at zero, spans for latencies.

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

/** A bar for each of these figures of each measurement; the figures' own titles where there are several. */
export function figureBars(
  title: string,
  unit: string,
  all: readonly Summary[],
  figures: Record<string, string>,
): Html {
  const rows = all.flatMap((summary) =>
    Object.entries(figures).flatMap(([name, what], nth) => {
      const value = figure(summary, name)
      const label = what === '' ? labelOf(summary, all) : `${labelOf(summary, all)}: ${what}`
      const color = nth === 0 ? contenderColor(summary.contender) : 'var(--others)'
      return value === undefined ? [] : [{ label, value: Math.max(value, 0), color }]
    }),
  )
  return bars(title, unit, rows)
}

/** By its contender; where the contender has several measurements, by what tells them apart too. */
export function labelOf({ contender, variant }: Summary, all: readonly Summary[]): string {
  const hash = hashOf({ variant })
  const variants = new Set(all.map((summary) => summary.variant))
  const isOne = new Set(all.map((summary) => summary.contender)).size === 1
  if (variants.size === 1) return titleOf(contender)
  return isOne ? hash : `${titleOf(contender)}, ${hash}`
}

export function hashOf({ variant }: Pick<Summary, 'variant'>): string {
  return variant === 'token' ? 'no hash' : variant
}
