// The charts of the load report.
import * as Plot from '@observablehq/plot'
import { titleOf } from '../contenders/contenders.ts'
import { type Outcome, outcomes } from '../measure/tally.ts'
import { number, type Run, type Summary, show, typicalRun } from '../src/results.ts'
import { chart, type Html, html, type Key, lines, powersOfTen } from './page.ts'

/** Spillway, and the contender that it is compared with, stand out. */
const contenderColor = (name: string): string =>
  name === 'spillway' ? '#3b82d6' : name === 'in-process' ? '#d1495b' : '#8a94a3'

/** From best to worst. */
const outcomeKeys: Record<Outcome, Key> = {
  ok: { title: 'answered', color: '#3ca06b' },
  ticket: { title: 'has a ticket', color: '#5b9be0' },
  busy: { title: 'told when to come back', color: '#e0aa44' },
  timeout: { title: 'no answer in ten seconds', color: '#d1495b' },
  error: { title: 'error', color: '#8a3b4b' },
}

const keyOf = (contender: string): Key => ({ title: titleOf(contender), color: contenderColor(contender) })

/** By its contender, and by its hash where there are several. */
export function labelOf({ contender, variant }: Summary, all: readonly Summary[]): string {
  const isOneVariant = new Set(all.map((summary) => summary.variant)).size === 1
  return isOneVariant ? titleOf(contender) : `${titleOf(contender)}, ${variant === 'token' ? 'no hash' : variant}`
}

interface Bar {
  label: string
  value: number
  color: string
}

/** One bar for each label, with its value. Bars of one label are stacked, without values. */
function bars(title: string, unit: string, rows: readonly Bar[], keys: readonly Key[] = []): Html {
  const labels = [...new Set(rows.map(({ label }) => label))]
  const isStacked = labels.length < rows.length
  const most = isStacked ? 100 : Math.max(...rows.map(({ value }) => value), 0) * 1.12
  const values = { y: 'label', x: 'value', text: ({ value }: Bar) => show(value), dx: 5, textAnchor: 'start' } as const
  const marks = [
    Plot.barX(rows, { y: 'label', x: 'value', fill: 'color', insetTop: 5, insetBottom: 5 }),
    ...(isStacked ? [] : [Plot.text(rows, values)]),
    Plot.axisY({ label: null, tickSize: 0 }),
  ]
  const x = { domain: [0, most || 1], label: unit, grid: true, ticks: 8 }
  return chart(title, { ...rowsOf(labels), x, marks }, keys)
}

function rowsOf(labels: readonly string[]): Plot.PlotOptions {
  return { height: labels.length * 30 + 70, marginLeft: 190, marginRight: 50, y: { domain: labels, axis: null } }
}

export function figureBars(title: string, unit: string, all: readonly Summary[], name: string): Html {
  const rows = all.flatMap((summary) => {
    const value = summary.figures[name]
    const [label, color] = [labelOf(summary, all), contenderColor(summary.contender)]
    return value === undefined ? [] : [{ label, value: Math.max(value, 0), color }]
  })
  return bars(title, unit, rows)
}

/** A hundred users of one hash: their waits, and the waits of everyone else meanwhile. */
export function waits(algorithm: string, all: readonly Summary[]): Html {
  const [neighbours, healthz, logins] = ['neighbourP', 'healthzP', 'p'].map((begins) =>
    all.flatMap((summary) => {
      const [p50Ms, p99Ms] = ['50', '99'].map((each) => summary.figures[`${begins}${each}Ms`])
      const { title: label, color } = keyOf(summary.contender)
      return p50Ms === undefined || p99Ms === undefined ? [] : [{ label, color, p50Ms, p99Ms }]
    }),
  )
  const ms = [neighbours, healthz, logins].flatMap((rows = []) => rows.flatMap(({ p50Ms, p99Ms }) => [p50Ms, p99Ms]))
  const power = (value: number, round: (x: number) => number) => 10 ** round(Math.log10(value))
  const domain = [power(Math.min(...ms, 1), Math.floor), power(Math.max(...ms, 10), Math.ceil) * 2] as const
  return html`<h3>${algorithm}</h3>
    ${spans("The neighbour endpoint, on libuv's thread pool, meanwhile: median and p99", neighbours, domain)}
    ${spans('/healthz, on the event loop alone, meanwhile: median and p99', healthz, domain)}
    ${spans('A login: median and p99', logins, domain)}`
}

type Span = Record<'p50Ms' | 'p99Ms', number> & Record<'label' | 'color', string>

/** From the median to p99 on a logarithmic scale. */
function spans(title: string, rows: readonly Span[] = [], domain: readonly [number, number]): Html {
  const line = { stroke: 'color', strokeWidth: 6, strokeLinecap: 'round', strokeOpacity: 0.45 } as const
  return chart(title, {
    ...rowsOf(rows.map(({ label }) => label)),
    x: { type: 'log', domain, label: 'ms', grid: true, ticks: powersOfTen(...domain), tickFormat: show },
    marks: [
      Plot.ruleY(rows, { y: 'label', x1: 'p50Ms', x2: 'p99Ms', ...line }),
      Plot.dot(rows, { y: 'label', x: 'p50Ms', fill: 'color', r: 4 }),
      Plot.dot(rows, { y: 'label', x: 'p99Ms', fill: 'color', r: 5 }),
      Plot.text(rows, { y: 'label', x: 'p99Ms', text: ({ p99Ms }) => show(p99Ms), dx: 10, textAnchor: 'start' }),
      Plot.axisY({ label: null, tickSize: 0 }),
    ],
  })
}

/** The share of requests that ended in each way. */
export function shares(all: readonly Summary[]): Html {
  const rows = all.flatMap((summary) => {
    const [counts = {}] = typicalRun(summary)?.series?.outcomes ?? []
    const total = outcomes.reduce((sum, outcome) => sum + number(counts[outcome]), 0)
    const label = labelOf(summary, all)
    return outcomes.map((one) => ({ label, value: (100 * number(counts[one])) / total, color: outcomeKeys[one].color }))
  })
  return bars('How requests ended', '% of requests', rows, Object.values(outcomeKeys))
}

/** Offered against served: a straight line as long as the server keeps up, then the knee. */
export function knee(title: string, all: readonly Summary[]): Html {
  const measured = all.map((summary) => {
    const steps = typicalRun(summary)?.series?.steps ?? []
    const points = steps.map(({ offered, served }) => ({ x: number(offered), y: number(served) }))
    return { ...keyOf(summary.contender), value: summary.figures.kneePerSecond ?? 0, points }
  })
  const most = Math.max(...measured.flatMap(({ points }) => points.map(({ x }) => x)), 1)
  const ideal = [0, most].map((at) => ({ x: at, y: at }))
  const atKnee = { frameAnchor: 'right', textAnchor: 'end', dy: -8, fill: 'color' } as const
  const drawn = [...measured, { title: 'served = offered', color: '#8a94a3', isDashed: true, points: ideal }]
  return lines(`${title}: offered and served a second`, drawn, {
    x: { label: 'offered a second', ticks: 8 },
    y: { label: 'served a second', grid: true },
    marks: [
      Plot.ruleY(measured, { y: 'value', stroke: 'color', strokeOpacity: 0.4 }),
      Plot.text(measured, { y: 'value', text: ({ value }) => show(value), ...atKnee }),
    ],
  })
}

/** A spike: how many arrived when and how it ended for them, and how many were waiting. */
export function overTime(runs: readonly Run[]): Html[] {
  const seconds = { label: 'seconds', ticks: 10 }
  const arrived = runs.map(({ contender, series: { bySecond = [] } = {} }) => {
    const rows = bySecond.flatMap((counts) =>
      outcomes.map((one) => ({ x: number(counts.second), users: number(counts[one]), color: outcomeKeys[one].color })),
    )
    const some = rows.filter(({ users }) => users > 0)
    const marks = [Plot.rectY(some, { x1: 'x', x2: ({ x }) => x + 1, y: 'users', fill: 'color', insetLeft: 1 })]
    const options = { height: 220, marginLeft: 60, x: seconds, y: { label: 'users', grid: true }, marks }
    return chart(`${titleOf(contender)}: users by the second they arrived in`, options, Object.values(outcomeKeys))
  })
  const depths = runs.flatMap(({ contender, series: { depth = [] } = {} }) =>
    (['open', 'queued'] as const).flatMap((name) => {
      const points = depth.flatMap((row) => (name in row ? [{ x: number(row.second), y: number(row[name]) }] : []))
      const { title, color } = keyOf(contender)
      const key = { title: name === 'open' ? title : `${title}, jobs in the queue`, color }
      return points.length > 0 ? [{ ...key, points, isDashed: name === 'queued' }] : []
    }),
  )
  return [
    ...arrived,
    lines('Requests open, and jobs in the queue', depths, { x: seconds, y: { label: 'at a time', grid: true } }),
  ]
}
