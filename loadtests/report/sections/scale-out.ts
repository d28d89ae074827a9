// Throughput against the ideal line as workers are added, and what a login costs a gateway as gateways are.
import * as Plot from '@observablehq/plot'
import type { Html } from '@spillway/storm/report/report'
import type { Row, ScenarioResult } from '../../src/results.ts'
import { type Summary, show, summarize } from '../../src/summary.ts'
import { bars, chart, contenderColor, powersOfTen } from '../chart.ts'
import { figure, number, quantity, type Section, section, titleOf, typicalRows } from '../section.ts'

const TOGETHER = 'var(--accent)'
const APART = 'var(--others)'

export function scaleOutSection(result: ScenarioResult): Section {
  const sizes = summarize(result).flatMap((summary) => typicalRows(summary, 'perSecond', 'size'))
  const workers = sizes.filter(({ gateways }) => gateways === 1)
  const gateways = sizes.filter((size) => size.gateways === size.workers)
  const costs = gateways.map((size) => ({
    label: `${size.gateways} gateway${size.gateways === 1 ? '' : 's'}${isApart(size) ? ', alone' : ''}`,
    value: number(size.gatewayMsPerLogin),
    color: isApart(size) ? APART : TOGETHER,
  }))
  return section(result, sentence(workers, gateways), [
    growth(workers),
    bars(
      'Processor time of the gateways, for each login, with as many workers behind them',
      'ms a login, all gateways together',
      costs,
      [
        { title: 'sharing a queue', color: TOGETHER },
        { title: 'as many, each with a queue and a worker of its own', color: APART },
      ],
    ),
  ])
}

function growth(workers: readonly Row[]): Html {
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

/** Many systems of one gateway, instead of one system of many. */
function isApart({ systems = 1 }: Row): boolean {
  return number(systems) > 1
}

function sentence(workers: readonly Row[], gateways: readonly Row[]): string {
  const most = workers.at(-1)
  const together = gateways.filter((size) => !isApart(size)).at(-1)
  const apart = gateways.find((size) => isApart(size) && size.gateways === together?.gateways)
  if (most === undefined || together === undefined || apart === undefined) return 'Not all sizes were measured.'
  const percent = (100 * number(most.perSecond)) / number(most.idealPerSecond)
  return (
    `${most.workers} workers give ${quantity(number(most.perSecond), 'logins a second')}, ${show(percent)} % of the ideal line. ` +
    `A login costs a gateway ${quantity(number(together.gatewayMsPerLogin), 'ms')} of processor time where ${together.gateways} share ` +
    `a queue, and ${quantity(number(apart.gatewayMsPerLogin), 'ms')} where as many on the same machine share no queue.`
  )
}

// Offered against served: a straight line as long as the server keeps up, and the knee where it stops.

const titles: Record<string, string> = {
  login: 'Logins',
  registration: 'Registrations',
  token: 'Logins without a hash, every process on all cores',
}

export function rampSection(result: ScenarioResult): Section {
  const summaries = summarize(result).filter(({ figures }) => figures.kneePerSecond)
  const variants = [...new Set(summaries.map(({ variant }) => variant))].map((variant) => ({
    title: titles[variant] ?? variant,
    measured: summaries.filter((summary) => summary.variant === variant),
  }))
  const says = variants.map(({ title, measured }) => {
    const knees = measured.map((each) => `${titleOf(each.contender)} ${quantity(figure(each, 'kneePerSecond'), '/s')}`)
    return `${title}: the knee is at ${knees.join(', ')}.`
  })
  return section(
    result,
    says.join(' '),
    variants.map(({ title, measured }) => knee(title, measured)),
  )
}

function knee(title: string, summaries: readonly Summary[]): Html {
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
