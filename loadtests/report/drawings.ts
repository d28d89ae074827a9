// The charts of single scenarios.
import * as Plot from '@observablehq/plot'
import { type Html, html } from '@spillway/storm/report/report'
import { titleOf } from '../contenders/contenders.ts'
import { outcomes } from '../measure/tally.ts'
import type { Row, Run } from '../src/results.ts'
import { figure, number, type Summary, show, typicalRows } from '../src/summary.ts'
import {
  type Bar,
  bars,
  chart,
  contenderColor,
  domainOf,
  figureBars,
  hashOf,
  outcomeColors,
  partColors,
  powersOfTen,
  type Span,
  spans,
} from './chart.ts'

// A hundred users: their waits, the waits of everyone else meanwhile, and how much gets through.

export function waitsOf(algorithm: string, summaries: readonly Summary[]): Html {
  const logins = spansOf(summaries, undefined)
  const neighbours = spansOf(summaries, 'neighbour')
  const healthz = spansOf(summaries, 'healthz')
  const domain = domainOf([...logins, ...neighbours, ...healthz])
  return html`<h3>${algorithm}</h3>
    ${spans("The neighbour endpoint, on libuv's thread pool, meanwhile: median, p95 and p99", neighbours, domain)}
    ${spans('/healthz, on the event loop alone, meanwhile: median, p95 and p99', healthz, domain)}
    ${spans('A login: median, p95 and p99', logins, domain)}
    ${figureBars('Verdicts a second', 'verdicts a second', summaries, { perSecond: '' })}`
}

/** The medians of the percentiles that begin with this name: `neighbour` for neighbourP50Ms. */
function spansOf(summaries: readonly Summary[], begins: 'neighbour' | 'healthz' | undefined): Span[] {
  return summaries.flatMap((summary) => {
    const [p50Ms, p95Ms, p99Ms] = ['50', '95', '99'].map((percentile) =>
      figure(summary, begins === undefined ? `p${percentile}Ms` : `${begins}P${percentile}Ms`),
    )
    if (p50Ms === undefined || p95Ms === undefined || p99Ms === undefined) return []
    const { contender } = summary
    return [{ label: titleOf(contender), color: contenderColor(contender), p50Ms, p95Ms, p99Ms }]
  })
}

/** Five thousand users: the share of requests that ended each way. */
export function shares(summary: Summary): Bar[] {
  const [counts = {}] = typicalRows(summary, 'perSecond', 'outcomes')
  const total = outcomes.reduce((sum, outcome) => sum + number(counts[outcome]), 0)
  return outcomes.map((outcome) => ({
    label: summary.variant === 'token' ? 'Spillway, no hash' : titleOf(summary.contender),
    value: (100 * number(counts[outcome])) / total,
    color: outcomeColors[outcome].color,
  }))
}

// Workers and gateways: throughput against the ideal line, and what a login costs a gateway.

const TOGETHER = 'var(--accent)'
const APART = 'var(--others)'

export function growth(workers: readonly Row[]): Html {
  const options: Plot.PlotOptions = {
    height: 360,
    marginLeft: 55,
    x: { type: 'log', label: 'workers', ticks: workers.map((row) => number(row.workers)), tickFormat: String },
    y: { type: 'log', label: 'logins a second', grid: true, ticks: powersOfTen(1, 10_000), tickFormat: show },
    marks: [
      Plot.line(workers, { x: 'workers', y: 'idealPerSecond', stroke: 'var(--ink)', strokeDasharray: '3 4' }),
      Plot.line(workers, { x: 'workers', y: 'perSecond', stroke: 'var(--accent)', strokeWidth: 2 }),
      Plot.dot(workers, { x: 'workers', y: 'perSecond', fill: 'var(--accent)', r: 4 }),
      Plot.text(workers, { x: 'workers', y: 'perSecond', text: (row) => show(number(row.perSecond)), dy: 14 }),
    ],
  }
  return chart('Logins a second by number of workers', options, [
    { title: 'measured', color: 'var(--accent)' },
    { title: 'ideal', color: 'var(--ink)' },
  ])
}

export function costs(sizes: readonly Row[]): Html {
  const rows = sizes
    .filter((size) => size.gateways === size.workers)
    .map((size) => ({
      label: `${size.gateways} gateway${size.gateways === 1 ? '' : 's'}${isApart(size) ? ', alone' : ''}`,
      value: number(size.gatewayMsPerLogin),
      color: isApart(size) ? APART : TOGETHER,
    }))
  return bars(
    'Processor time of the gateways, for each login, with as many workers behind them',
    'ms a login, all gateways together',
    rows,
    [
      { title: 'sharing a queue', color: TOGETHER },
      { title: 'as many, each with a queue and a worker of its own', color: APART },
    ],
  )
}

/** Many systems of one gateway, instead of one system of many. */
function isApart({ systems = 1 }: Row): boolean {
  return number(systems) > 1
}

// Offered against served: a straight line as long as the server keeps up, and the knee where it stops.

const rampTitles: Record<string, string> = {
  login: 'Logins',
  registration: 'Registrations',
  token: 'Logins without a hash, every process on all cores',
}

export function variantsOf(all: readonly Summary[]) {
  const measured = all.filter(({ figures }) => figures.kneePerSecond)
  return [...new Set(measured.map(({ variant }) => variant))].map((variant) => ({
    title: rampTitles[variant] ?? variant,
    summaries: measured.filter((summary) => summary.variant === variant),
  }))
}

export function knee({ title, summaries }: ReturnType<typeof variantsOf>[number]): Html {
  const steps = summaries.flatMap((summary) =>
    typicalRows(summary, 'kneePerSecond', 'steps').map((step) => ({
      contender: summary.contender,
      color: contenderColor(summary.contender),
      offered: number(step.offered),
      served: number(step.served),
    })),
  )
  const knees = summaries.map((summary) => ({
    title: titleOf(summary.contender),
    value: figure(summary, 'kneePerSecond') ?? 0,
    color: contenderColor(summary.contender),
  }))
  const most = Math.max(...steps.map(({ offered }) => offered), 1)
  const ideal = [0, most * 1.2].map((value) => ({ value }))
  const besideLine = { frameAnchor: 'right', textAnchor: 'end', dy: -8, fill: 'color' } as const
  const options: Plot.PlotOptions = {
    height: 340,
    x: { label: 'offered a second', domain: [0, most], nice: true, ticks: 8 },
    y: { label: 'served a second', domain: [0, most], grid: true, nice: true },
    marks: [
      Plot.line(ideal, { x: 'value', y: 'value', stroke: 'var(--ink)', strokeDasharray: '3 4', clip: true }),
      Plot.ruleY(knees, { y: 'value', stroke: 'color', strokeOpacity: 0.4 }),
      Plot.text(knees, { y: 'value', text: ({ value }) => show(value), ...besideLine }),
      Plot.line(steps, { x: 'offered', y: 'served', z: 'contender', stroke: 'color', strokeWidth: 2 }),
      Plot.dot(steps, { x: 'offered', y: 'served', fill: 'color', r: 3.5 }),
    ],
  }
  const keys = [...knees, { title: 'served = offered', color: 'var(--ink)' }]
  return chart(`${title}: offered and served a second`, options, keys)
}

// A spike over time: how many arrived when and how it ended for them, and how many were waiting.

export function arrivals({ contender, series }: Run): Html {
  const rows = (series.bySecond ?? []).flatMap((counts) =>
    outcomes.map((outcome) => ({
      second: number(counts.second),
      users: number(counts[outcome]),
      color: outcomeColors[outcome].color,
    })),
  )
  const options: Plot.PlotOptions = {
    height: 220,
    x: { label: 'seconds', ticks: 10 },
    y: { label: 'users', grid: true },
    marks: [
      Plot.rectY(
        rows.filter(({ users }) => users > 0),
        { x1: 'second', x2: ({ second }) => second + 1, y: 'users', fill: 'color', insetLeft: 1 },
      ),
    ],
  }
  const keys = outcomes.map((outcome) => outcomeColors[outcome])
  return chart(`${titleOf(contender)}: users by the second they arrived in`, options, keys)
}

export function depths(runs: readonly Run[]): Html {
  const keys = runs.map(({ contender }) => ({ title: titleOf(contender), color: contenderColor(contender) }))
  const rows = runs.flatMap(({ contender, series }) =>
    (series.depth ?? []).map((row) => ({ contender, color: contenderColor(contender), ...row })),
  )
  const inQueue = rows.filter((row) => 'queued' in row)
  const line = { x: 'second', z: 'contender', stroke: 'color', sort: 'second' }
  const options: Plot.PlotOptions = {
    height: 260,
    marginLeft: 55,
    x: { label: 'seconds', ticks: 10 },
    y: { label: 'at a time', grid: true },
    marks: [
      Plot.line(rows, { ...line, y: 'open', strokeWidth: 2 }),
      Plot.line(inQueue, { ...line, y: 'queued', strokeDasharray: '4 3' }),
    ],
  }
  return chart('Requests open (and, dashed, jobs in the queue)', options, keys)
}

export function waits({ contender, series }: Run): Html {
  const rows = (series.waits ?? []).map(({ dueS, waitedMs, outcome }) => ({
    dueS: number(dueS),
    waitedS: Math.max(number(waitedMs), 1) / 1_000,
    color: outcomeColors[outcomes.find((one) => one === outcome) ?? 'error'].color,
  }))
  return chart(`${titleOf(contender)}: how long each user waited`, {
    height: 240,
    marginLeft: 55,
    x: { label: 'arrived at second', ticks: 10 },
    y: {
      type: 'log',
      domain: [0.01, 100],
      clamp: true,
      label: 'waited, seconds',
      grid: true,
      ticks: powersOfTen(0.01, 100),
      tickFormat: String,
    },
    marks: [Plot.dot(rows, { x: 'dueS', y: 'waitedS', fill: 'color', r: 2, fillOpacity: 0.7 })],
  })
}

// Where a login spends its time, and what the processors and Redis do for it.

export function stack(title: string, summaries: readonly Summary[], series: string): Html {
  const rows = summaries.flatMap((summary) =>
    typicalRows(summary, 'p50Ms', series).map((row): Row => ({ ...row, variant: hashOf(summary) })),
  )
  const stages = [...new Set(rows.map(({ stage }) => String(stage)))]
  const colorOf = (index: number) => partColors[index % partColors.length] ?? 'var(--ink)'
  // Stage by stage, so that all are stacked in the same order.
  const parts = stages.flatMap((name, index) =>
    rows
      .filter(({ stage }) => stage === name)
      .map(({ variant, ms }) => ({ label: `${variant}`, value: number(ms), color: colorOf(index) })),
  )
  const keys = stages.map((name, index) => {
    const sizes = rows.filter(({ stage }) => stage === name).map(({ ms }) => show(number(ms)))
    return { title: `${name} (${sizes.join(' / ')} ms)`, color: colorOf(index) }
  })
  return bars(title, 'ms a login', parts, keys)
}

/** A command that takes less of a login is noise. */
const LEAST_US = 1

export function redisCommands(summary: Summary): Html {
  const label = ({ command, calls }: Row) =>
    calls === undefined ? `${command}` : `${command} × ${show(number(calls))}`
  const rows = typicalRows(summary, 'perSecond', 'commands')
    .filter(({ us }) => number(us) >= LEAST_US)
    .map((row) => ({ label: label(row), value: number(row.us), color: 'var(--accent)' }))
  return bars("Redis's processor time for one login, by command", 'µs', rows)
}
