// Offered against served: a straight line as long as the server keeps up, and the knee where it stops.
import * as Plot from '@observablehq/plot'
import { show } from '../../src/figures.ts'
import type { ScenarioResult } from '../../src/results.ts'
import { type Summary, summarize } from '../../src/summary.ts'
import { chart, legend } from '../chart.ts'
import { contenderColor } from '../colors.ts'
import { type Html, html } from '../html.ts'
import { figure, number, quantity, section, titleOf, typicalRun } from '../section.ts'

export function rampSection(result: ScenarioResult): Html {
  const summaries = summarize(result).filter(({ figures }) => figures.kneePerSecond)
  const variants = [...new Set(summaries.map(({ variant }) => variant))]
  const knees = (variant: string) =>
    summaries
      .filter((summary) => summary.variant === variant)
      .map((summary) => `${titleOf(summary.contender)} ${quantity(figure(summary, 'kneePerSecond'), '/s')}`)
  const says = variants.map((variant) => `${titles[variant] ?? variant}: the knee is at ${knees(variant).join(', ')}.`)
  return section(
    result,
    says.join(' '),
    variants.map((variant) =>
      knee(
        variant,
        summaries.filter((summary) => summary.variant === variant),
      ),
    ),
  )
}

const titles: Record<string, string> = {
  login: 'Logins',
  registration: 'Registrations',
  token: 'Logins without a hash, every process on all cores',
}

function knee(variant: string, summaries: readonly Summary[]): Html {
  const steps = summaries.flatMap((summary) => {
    const color = contenderColor(summary.contender)
    return (typicalRun(summary, 'kneePerSecond')?.series.steps ?? []).map((step) => ({
      contender: summary.contender,
      color,
      offered: number(step.offered),
      served: number(step.served),
    }))
  })
  const marks = summaries.map((summary) => ({
    knee: figure(summary, 'kneePerSecond') ?? 0,
    color: contenderColor(summary.contender),
  }))
  const most = Math.max(...steps.map(({ offered }) => offered), 1)
  const drawing = chart(`Offered and served requests a second: ${titles[variant] ?? variant}`, ({ narrow }) => ({
    height: narrow ? 260 : 340,
    x: {
      label: 'offered a second',
      domain: [0, most],
      nice: true,
      ticks: narrow ? 4 : 8,
    },
    y: { label: 'served a second', domain: [0, most], grid: true, nice: true },
    marks: [
      Plot.line(
        [0, most * 1.2].map((value) => ({ value })),
        { x: 'value', y: 'value', stroke: 'var(--ink)', strokeDasharray: '3 4', clip: true },
      ),
      Plot.ruleY(marks, { y: 'knee', stroke: 'color', strokeOpacity: 0.4 }),
      Plot.text(marks, {
        y: 'knee',
        text: ({ knee }) => show(knee),
        frameAnchor: 'right',
        textAnchor: 'end',
        dy: -8,
        fill: 'color',
      }),
      Plot.line(steps, { x: 'offered', y: 'served', z: 'contender', stroke: 'color', strokeWidth: 2 }),
      Plot.dot(steps, { x: 'offered', y: 'served', fill: 'color', r: 3.5 }),
    ],
  }))
  const keys = summaries.map(({ contender }) => ({ title: titleOf(contender), color: contenderColor(contender) }))
  return html`<h4>${titles[variant] ?? variant}</h4>${legend([...keys, { title: 'served = offered', color: 'var(--ink)' }])}${drawing}`
}
