// One page of a measurement, without scripts or a network. Observable Plot draws its charts into a
// document of linkedom; its style is simple.css.
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import * as Plot from '@observablehq/plot'
import { parseHTML } from 'linkedom'

/** HTML in template literals: what is put in is escaped, unless it is HTML itself. */
export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

type Content = Html | string | number | undefined | readonly Content[]

/** `undefined` becomes nothing, a list its parts one after the other. */
export function html(strings: TemplateStringsArray, ...contents: Content[]): Html {
  return new Html(strings.map((text, index) => text + render(contents[index])).join(''))
}

function render(content: Content): string {
  if (content === undefined) return ''
  if (content instanceof Html) return content.text
  if (typeof content === 'object') return content.map(render).join('')
  return String(content).replace(/[&<>"']/g, (character) => `&#${character.codePointAt(0)};`)
}

/** In a packed program the style lies beside it. */
const beside = new URL('simple.min.css', import.meta.url)
const simpleCss = () =>
  readFileSync(
    existsSync(beside) ? beside : createRequire(import.meta.url).resolve('simpledotcss/simple.min.css'),
    'utf8',
  )

/** What a page has beyond that style: wide charts, tables of numbers, legends in one line. */
const OWN = `
body { grid-template-columns: 1fr min(60rem, 94%) 1fr; }
h1 { font-size: 2.2rem; }
h2 { font-size: 1.7rem; }
h3 { font-size: 1.3rem; }
table { display: block; overflow-x: auto; font-size: 0.8rem; font-variant-numeric: tabular-nums; }
td { text-align: right; white-space: nowrap; }
tbody th { text-align: left; font-weight: normal; white-space: nowrap; }
figure { margin: 1.5rem 0; }
figure h4 { margin: 0 0 0.3rem; font-size: 1rem; }
figure svg { display: block; width: 100%; height: auto; overflow: visible; --plot-background: var(--bg); }
.keys span { margin-right: 1rem; font-size: 0.85rem; white-space: nowrap; }
.keys i { display: inline-block; width: 0.8em; height: 0.8em; margin-right: 0.4em; border-radius: 3px; }
small { color: var(--text-light); }
`

interface Page {
  title: string
  /** The first words, under the title. */
  lead: Content
  /** When, where and with which settings it was measured, in small print. */
  about: string
  body: Content
}

export function page({ title, lead, about, body }: Page): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>${new Html(simpleCss() + OWN)}</style>
</head>
<body>
<header><h1>${title}</h1><p>${lead}</p><p><small>${about}</small></p></header>
<main>${body}</main>
</body>
</html>
`.text
}

/** A table of figures: the first cell of each row names it. */
export function table(heads: readonly string[], rows: readonly (readonly [name: Content, ...cells: string[]])[]): Html {
  return html`<table><thead><tr>${heads.map((head) => html`<th>${head}</th>`)}</tr></thead>
<tbody>${rows.map(([name, ...cells]) => html`<tr><th>${name}</th>${cells.map((cell) => html`<td>${cell}</td>`)}</tr>\n`)}</tbody></table>`
}

// Charts.

const { document } = parseHTML('<!doctype html><html><body></body></html>')
const WIDTH_PX = 880

/** The meaning of a colour. */
export interface Key {
  title: string
  color: string
}

/** Colours of lines that have no meaning of their own. */
export const colors = ['#4269d0', '#e8873d', '#d1495b', '#3ca08f', '#3ca951', '#d8659b', '#9270ca', '#6f9fd8']

/** A chart under its title, which is also what is read to those who cannot see it. */
export function chart(title: string, options: Plot.PlotOptions, keys: readonly Key[] = []): Html {
  const style = { fontSize: '12px' }
  const svg = Plot.plot({
    marginBottom: 40,
    ...options,
    width: WIDTH_PX,
    document,
    className: 'plot',
    ariaLabel: title,
    style,
  })
  const legend = keys.map(({ title, color }) => html`<span><i style="background:${color}"></i>${title}</span>`)
  return html`<figure><h4>${title}</h4>${keys.length > 0 ? html`<div class="keys">${legend}</div>` : undefined}${new Html(small(svg.outerHTML))}</figure>`
}

/** Without the invisible half of the size: fractions of a pixel, ticks beside grid lines, names. */
function small(svg: string): string {
  return svg
    .replace(/<style>.*?<\/style>/s, '')
    .replaceAll(/<g [^>]*aria-label="[xy]-axis tick">.*?<\/g>/g, '')
    .replaceAll(/(?<=<g[^>]*) (aria-label|aria-hidden|font-variant)="[^"]*"/g, '')
    .replaceAll(/(?<=<svg[^>]*) (width|height|font-size|font-family)="[^"]*"/g, '')
    .replaceAll(/="[^"]*"/g, (attribute) => attribute.replaceAll(/-?\d{2,}\.\d+/g, (value) => Number(value).toFixed(0)))
}

/** The powers of ten in a range, for logarithmic axes. */
export function powersOfTen(least: number, most: number): number[] {
  const first = Math.ceil(Math.log10(least))
  return Array.from({ length: Math.max(Math.floor(Math.log10(most)) - first + 1, 0) }, (_, n) => 10 ** (first + n))
}

export interface Line extends Key {
  points: readonly { x: number; y: number }[]
  isDashed?: boolean
}

export function lines(title: string, all: readonly Line[], { marks = [], ...axes }: Plot.PlotOptions): Html {
  const drawn = all.map(({ points, color, isDashed }) =>
    Plot.lineY(points, { x: 'x', y: 'y', stroke: color, strokeWidth: 2, ...(isDashed && { strokeDasharray: '4 3' }) }),
  )
  return chart(title, { height: 240, marginLeft: 60, ...axes, marks: [...marks, ...drawn] }, all)
}
