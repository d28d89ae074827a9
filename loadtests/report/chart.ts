// Charts by Observable Plot, drawn here into static SVG: they need no script where they are read, print as they look, and
// take their colours from the page's style, so that light and dark are one drawing. Plot needs a document to draw into;
// linkedom is one without a browser.
import * as Plot from '@observablehq/plot'
import { Html, html } from '@spillway/storm/report/report'
import { parseHTML } from 'linkedom'
import type { Outcome } from '../measure/tally.ts'

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
