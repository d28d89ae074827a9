// The report of a storm: one HTML file with everything in it.
import * as Plot from '@observablehq/plot'
import { colors, type Html, html, lines, page, powersOfTen, table as tableOf } from '../../report/page.ts'
import { advice } from './advice.ts'
import { NOISE_MS, type StormResult } from './storm.ts'
import { count, milliseconds, phases, seconds, sentences, table } from './words.ts'

/** @returns a whole HTML document that needs nothing else, not even a network */
export function renderReport(result: StormResult): string {
  const { startedAt, settings, generator, interrupted } = result
  const { users, durationS, probesPerSecond, p99Ms, timeoutS, calmS } = settings
  const [first = '', ...others] = sentences(result)
  const todo = advice(result).map(({ text, code = [], more }) => {
    const see = more === undefined ? undefined : ` See: ${more}.`
    return html`<p>${text}${see}</p>${code.length > 0 ? html`<pre><code>${code.join('\n')}</code></pre>` : undefined}`
  })
  const { columns, rows } = table(result)
  const heads = columns.map((column, n) => `${column} ${phases[Math.floor(n / (columns.length / phases.length))]}`)
  const late =
    generator.lateP99Ms === undefined ? '.' : `, and sent probes ${milliseconds(generator.lateP99Ms)} late at p99.`
  return page({
    title: 'What do logins do to the rest?',
    lead: first,
    about:
      `${startedAt.slice(0, 16).replace('T', ' ')} UTC · ${count(users)} users · ${seconds(durationS)} · probes ${probesPerSecond} times a second · ` +
      `limit ${milliseconds(p99Ms)} at p99 · time limit ${seconds(timeoutS)}`,
    body: [
      interrupted
        ? html`<p class="notice">This storm was interrupted: what follows is what it had measured until then.</p>`
        : undefined,
      others.map((sentence) => html`<p>${sentence}</p>`),
      rows.length > 0
        ? tableOf(
            ['', ...heads],
            rows.map(({ name, cells }) => [name, ...cells]),
          )
        : undefined,
      chart(result),
      todo.length > 0 ? html`<h2>What to do</h2>${todo}` : undefined,
      html`<h2>How it was measured</h2>
<p>Each user logs in again as soon as the last login was answered, on a connection of its own. Probes are sent at a constant rate, and timed from when
they were due, so that one that has to wait is not left out. One that fails, or has no answer within ${seconds(timeoutS)}, counts as ${seconds(timeoutS)}.</p>
<p>Calm is ${seconds(calmS)} before the first login; the storm lasts until the last login has ended. Afterwards a probe is as quick as before once no
answer in a second takes more than twice its p99 when calm, or ${NOISE_MS} ms.</p>
<p>The program that measured used ${count(generator.corePercent)} % of a core during the storm${late}</p>`,
    ],
  })
}

/** The slowest answers over time, a line for each probe, with the storm and the limit. */
function chart({ probes, loginsS, settings: { p99Ms } }: StormResult): Html | undefined {
  const drawn = probes.filter(({ slowest }) => slowest.length > 0)
  if (drawn.length === 0) return undefined
  const all = drawn.map(({ name, slowest }, n) => ({
    title: name,
    color: colors[n % colors.length] ?? '',
    points: slowest.map(({ second, ms }) => ({ x: second, y: Math.max(ms, 0.1) })),
  }))
  const ms = [p99Ms, ...all.flatMap(({ points }) => points.map(({ y }) => y))]
  const domain = [
    10 ** Math.floor(Math.log10(Math.min(...ms))),
    10 ** Math.ceil(Math.log10(Math.max(...ms)) + 0.01),
  ] as const
  const limit = {
    text: () => `limit: ${milliseconds(p99Ms)}`,
    frameAnchor: 'left',
    textAnchor: 'start',
    dx: 4,
    dy: -7,
  } as const
  return lines('The slowest answer of each probe in every fifth of a second', all, {
    height: 300,
    x: { label: 'seconds from the first login, by when it was due' },
    y: {
      type: 'log',
      domain,
      grid: true,
      ticks: powersOfTen(...domain),
      tickFormat: (value: number) => milliseconds(value),
      label: null,
    },
    marks: [
      Plot.rectX([{ from: 0, to: loginsS }], { x1: 'from', x2: 'to', fill: 'currentColor', fillOpacity: 0.07 }),
      Plot.text([`the storm: ${seconds(loginsS)}`], { x: 0, frameAnchor: 'top', textAnchor: 'start', dx: 6, dy: 8 }),
      Plot.ruleY([p99Ms], { stroke: '#d1495b', strokeDasharray: '5 4' }),
      Plot.text([p99Ms], { y: p99Ms, fill: '#d1495b', ...limit }),
    ],
  })
}
