// The slowest answers of probes over time, drawn into an SVG that needs no script.
import type { ProbeResult, StormResult } from '../result.ts'
import { milliseconds, seconds } from '../words/sentences.ts'

const WIDTH = 840
const HEIGHT = 300
const MARGIN = { top: 26, right: 12, bottom: 40, left: 70 }
const SECONDS_APART = [1, 2, 5, 10, 20, 50]
const TICKS_MAX = 12

interface Scales {
  x(second: number): number
  y(ms: number): number
  times: number[]
  powers: number[]
}

/** One line for each probe. The storm is marked, and the limit drawn. Undefined without probes. */
export function chart(result: StormResult): Html | undefined {
  const drawn = result.probes.filter(({ slowest }) => slowest.length > 0)
  if (drawn.length === 0) return undefined
  const { x, y, times, powers } = scalesOf(drawn, result)
  const [top, bottom] = [MARGIN.top, HEIGHT - MARGIN.bottom]
  const [left, right] = [MARGIN.left, WIDTH - MARGIN.right]
  const limit = result.settings.p99Ms
  const title = 'The slowest answer of each probe in every fifth of a second'
  return html`<h4>${title}</h4>
    <p class="legend">${drawn.map(({ name }, index) => html`<span><i style="background:${color(index)}"></i>${name}</span>`)}</p>
    <div class="chart"><svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${title}" font-size="12" fill="var(--soft)">
      <rect x="${x(0)}" y="${top}" width="${Math.round(x(result.loginsS) - x(0))}" height="${bottom - top}" fill="var(--panel)"/>
      <text x="${x(0) + 6}" y="${top - 8}">the storm: ${seconds(result.loginsS)}</text>
      ${powers.map((ms) => html`<line x1="${left}" x2="${right}" y1="${y(ms)}" y2="${y(ms)}" stroke="var(--line)"/><text x="${left - 8}" y="${y(ms) + 4}" text-anchor="end">${milliseconds(ms)}</text>`)}
      ${times.map((second) => html`<text x="${x(second)}" y="${bottom + 18}" text-anchor="middle">${second}</text>`)}
      <text x="${right}" y="${HEIGHT - 4}" text-anchor="end">seconds from the first login, by when it was due</text>
      <line x1="${left}" x2="${right}" y1="${y(limit)}" y2="${y(limit)}" stroke="var(--against)" stroke-dasharray="5 4"/>
      <text x="${left + 4}" y="${y(limit) - 5}" fill="var(--against)">limit: ${milliseconds(limit)}</text>
      ${drawn.map(({ slowest }, index) => html`<polyline points="${slowest.map(({ second, ms }) => `${x(second)},${y(ms)}`).join(' ')}" fill="none" stroke="${color(index)}" stroke-width="2" stroke-linejoin="round"/>`)}
    </svg></div>`
}

const color = (index: number) => `var(--part-${index + 1})`

/** Time is even; milliseconds are logarithmic, because a storm changes them by powers of ten. */
function scalesOf(probes: readonly ProbeResult[], { loginsS, settings: { p99Ms } }: StormResult): Scales {
  const all = probes.flatMap(({ slowest }) => slowest)
  const first = Math.min(0, ...all.map(({ second }) => second))
  const last = Math.max(loginsS, 1, ...all.map(({ second }) => second))
  const power = (ms: number) => Math.log10(Math.max(ms, 0.1))
  const least = Math.floor(Math.min(power(p99Ms), ...all.map(({ ms }) => power(ms))))
  const most = Math.ceil(Math.max(power(p99Ms), ...all.map(({ ms }) => power(ms))) + 0.01)
  const apart = SECONDS_APART.find((each) => (last - first) / each <= TICKS_MAX) ?? 100
  const round = (value: number) => Math.round(value * 10) / 10
  return {
    x: (second) => round(MARGIN.left + ((second - first) / (last - first)) * (WIDTH - MARGIN.left - MARGIN.right)),
    y: (ms) => round(MARGIN.top + ((most - power(ms)) / (most - least)) * (HEIGHT - MARGIN.top - MARGIN.bottom)),
    times: steps(Math.ceil(first / apart), Math.floor(last / apart)).map((step) => step * apart),
    powers: steps(least, most).map((exponent) => 10 ** exponent),
  }
}

function steps(from: number, to: number): number[] {
  return Array.from({ length: Math.max(to - from + 1, 0) }, (_, index) => from + index)
}

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
