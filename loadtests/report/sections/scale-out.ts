// Throughput against the ideal line as workers are added, and what a login costs a gateway as gateways are.
import * as Plot from '@observablehq/plot'
import type { Html } from '@spillway/storm/report/html'
import { show } from '../../src/figures.ts'
import type { Row, ScenarioResult } from '../../src/results.ts'
import { summarize } from '../../src/summary.ts'
import { bars } from '../bars.ts'
import { chart, powersOfTen } from '../chart.ts'
import { number, quantity, type Section, section, typicalRows } from '../section.ts'

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
