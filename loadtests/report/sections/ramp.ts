// Offered against served: a straight line as long as the server keeps up, and the knee where it stops.
import * as Plot from '@observablehq/plot'
import type { Html } from '@spillway/storm/report/html'
import { show } from '../../src/figures.ts'
import type { ScenarioResult } from '../../src/results.ts'
import { type Summary, summarize } from '../../src/summary.ts'
import { chart } from '../chart.ts'
import { contenderColor } from '../colors.ts'
import { figure, number, quantity, type Section, section, titleOf, typicalRows } from '../section.ts'

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
