// The report of a storm: one HTML file with everything in it.
import { NOISE_MS } from '../probes.ts'
import type { ProbeResult, StormResult } from '../result.ts'
import { type Advice, advice } from '../words/advice.ts'
import { count, milliseconds, phases, seconds, sentences, table } from '../words/in-words.ts'
import { style } from './style.ts'

/** @returns a whole HTML document that needs nothing else, not even a network */
export function renderReport(result: StormResult): string {
  const [first = '', ...others] = sentences(result)
  const todo = advice(result)
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>A storm of logins</title>
<style>${new Html(style)}</style>
</head>
<body>
<header>
  <h1>What do logins do to the rest?</h1>
  <p class="lead">${first}</p>
  <p class="settings">${settingsOf(result)}</p>
</header>
<main>
${result.interrupted ? html`<p class="warning">This storm was interrupted: what follows is what it had measured until then.</p>` : undefined}
${others.map((sentence) => html`<p>${sentence}</p>`)}
${tableOf(result)}
${chart(result)}
${todo.length > 0 ? html`<section><h2>What to do</h2>${todo.map(paragraph)}</section>` : undefined}
<section><h2>How it was measured</h2>${method(result).map((text) => html`<p>${text}</p>`)}</section>
</main>
</body>
</html>
`.text
}

function settingsOf({ startedAt, settings }: StormResult): string {
  const { users, durationS, probesPerSecond, p99Ms, timeoutS } = settings
  const when = startedAt.slice(0, 16).replace('T', ' ')
  return (
    `${when} UTC · ${count(users)} users · ${seconds(durationS)} · probes ${probesPerSecond} times a second · limit ` +
    `${milliseconds(p99Ms)} at p99 · time limit ${seconds(timeoutS)}`
  )
}

function tableOf(result: StormResult): Html | undefined {
  const { columns, rows } = table(result)
  if (rows.length === 0) return undefined
  const perPhase = columns.length / phases.length
  return html`<div class="table"><table>
  <thead>
    <tr><th></th>${phases.map((phase) => html`<th colspan="${perPhase}">${phase}</th>`)}</tr>
    <tr><th></th>${columns.map((column) => html`<th>${column}</th>`)}</tr>
  </thead>
  <tbody>${rows.map(({ name, cells }) => html`<tr><th>${name}</th>${cells.map((cell) => html`<td>${cell}</td>`)}</tr>`)}</tbody>
</table></div>`
}

function paragraph({ text, code = [], more }: Advice): Html {
  const see = more === undefined ? undefined : ` See: ${more}.`
  return html`<p>${text}${see}</p>${code.length > 0 ? html`<pre><code>${code.join('\n')}</code></pre>` : undefined}`
}

function method({ settings, generator }: StormResult): string[] {
  const { timeoutS, calmS } = settings
  return [
    `Each user logs in again as soon as the last login was answered, on a connection of its own. Probes are sent at a constant rate, ` +
      'and timed from when they were due, so that one that has to wait is not left out. One that fails, or has no answer within ' +
      `${seconds(timeoutS)}, counts as ${seconds(timeoutS)}.`,
    `Calm is ${seconds(calmS)} before the first login; the storm lasts until the last login has ended. Afterwards a probe is as quick as ` +
      `before once no answer in a second takes more than twice its p99 when calm, or ${NOISE_MS} ms.`,
    `The program that measured used ${count(generator.corePercent)} % of a core during the storm` +
      (generator.lateP99Ms === undefined ? '.' : `, and sent probes ${milliseconds(generator.lateP99Ms)} late at p99.`),
  ]
}

// The slowest answers of probes over time, drawn into an SVG that needs no script.

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
