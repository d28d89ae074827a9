// Charts by Observable Plot, drawn here into static SVG: they need no script where they are read, print as they look, and
// take their colours from the page's style, so that light and dark are one drawing. Plot needs a document to draw into;
// linkedom is one without a browser.
import * as Plot from '@observablehq/plot'
import { Html, html } from '@spillway/client/storm/report/html'
import { parseHTML } from 'linkedom'

const { document } = parseHTML('<!doctype html><html><body></body></html>')

/** Pixels. Drawn for both; the page shows the one that fits. */
const WIDE = 840
const NARROW = 350

/** The meaning of a colour. */
export interface Key {
  title: string
  color: string
}

/** A chart under its title, which is also what is read to those who cannot see it. */
export function chart(title: string, draw: (narrow: boolean) => Plot.PlotOptions, keys: readonly Key[] = []): Html {
  const drawn = [WIDE, NARROW].map((width) => {
    const narrow = width === NARROW
    const svg = Plot.plot({
      marginBottom: 46,
      ...draw(narrow),
      width,
      document,
      className: 'plot',
      ariaLabel: title,
      style: { fontSize: '12px' },
    })
    return html`<div class="${narrow ? 'narrow' : 'wide'}">${new Html(svg.outerHTML)}</div>`
  })
  return html`<h4>${title}</h4>${legend(keys)}<div class="chart">${drawn}</div>`
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
