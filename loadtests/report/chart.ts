// Charts by Observable Plot, drawn here into static SVG: they need no script where they are read, print as they look, and
// take their colours from the page's style, so that light and dark are one drawing. Plot needs a document to draw into;
// linkedom is one without a browser.
import * as Plot from '@observablehq/plot'
import { parseHTML } from 'linkedom'
import { Html, html } from './html.ts'

const { document } = parseHTML('<!doctype html><html><body></body></html>')

/** Pixels. Drawn for both; the page shows the one that fits. */
const WIDE = 840
const NARROW = 350

export interface Size {
  width: number
  narrow: boolean
}

/** @param alt what it shows, for those who cannot see it */
export function chart(alt: string, draw: (size: Size) => Plot.PlotOptions): Html {
  const drawn = [WIDE, NARROW].map((width) => {
    const narrow = width === NARROW
    const options = draw({ width, narrow })
    const svg = Plot.plot({
      marginBottom: 46,
      ...options,
      width,
      document,
      className: 'plot',
      ariaLabel: alt,
      style: { fontSize: '12px' },
    })
    return html`<div class="${narrow ? 'narrow' : 'wide'}">${new Html(svg.outerHTML)}</div>`
  })
  return html`<div class="chart">${drawn}</div>`
}

export interface Key {
  title: string
  color: string
}

/** The powers of ten in a range, for logarithmic axes: the lines between them would only be grey. */
export function powersOfTen(least: number, most: number): number[] {
  const first = Math.ceil(Math.log10(least))
  return Array.from({ length: Math.max(Math.floor(Math.log10(most)) - first + 1, 0) }, (_, n) => 10 ** (first + n))
}

/** What the colours mean. */
export function legend(keys: readonly Key[]): Html {
  return html`<p class="legend">${keys.map(({ title, color }) => html`<span><i style="background:${color}"></i>${title}</span>`)}</p>`
}
