// Stacked bars: what a login waits for, and what the processors do for it.
import * as Plot from '@observablehq/plot'
import { show } from '../../src/figures.ts'
import type { Row, ScenarioResult } from '../../src/results.ts'
import { type Summary, summarize } from '../../src/summary.ts'
import { chart, legend } from '../chart.ts'
import { partColors } from '../colors.ts'
import { type Html, html } from '../html.ts'
import { figure, number, quantity, section, typicalRun } from '../section.ts'

const titles: Record<string, string> = { argon2id: 'argon2id', token: 'no hash' }

export function profileSection(result: ScenarioResult): Html {
  const summaries = summarize(result).filter(({ figures }) => figures.p50Ms)
  const rowsOf = (series: string) =>
    summaries.flatMap((summary) =>
      (typicalRun(summary, 'p50Ms')?.series[series] ?? []).map((row) => ({
        ...row,
        variant: titles[summary.variant] ?? summary.variant,
      })),
    )
  return section(result, sentence(summaries), [
    html`<h4>Time of a login</h4>`,
    stack('Time of a login by stage', rowsOf('time')),
    html`<h4>Processor time of a login, by process</h4>`,
    stack('Processor time of a login by process', rowsOf('processor')),
    html`<h4>Processor time on the event loops of gateway and worker, by what it is for</h4>`,
    stack('Processor time on the event loops by stage', rowsOf('eventLoops')),
  ])
}

function stack(alt: string, rows: readonly (Row & { variant: string })[]): Html {
  const stages = [...new Set(rows.map(({ stage }) => String(stage)))]
  const colorOf = (stage: string) => partColors[stages.indexOf(stage) % partColors.length] ?? 'var(--ink)'
  const parts = rows.map(({ variant, stage, process, ms }) => ({
    variant: process === undefined ? variant : `${process === 'api' ? 'gateway' : process}, ${variant}`,
    stage: String(stage),
    ms: number(ms),
    color: colorOf(String(stage)),
  }))
  const labels = [...new Set(parts.map(({ variant }) => variant))]
  const drawing = chart(alt, ({ narrow }) => ({
    height: labels.length * (narrow ? 48 : 36) + 70,
    marginLeft: narrow ? 10 : 140,
    marginRight: narrow ? 20 : 40,
    x: { label: 'ms a login', grid: true, ticks: narrow ? 4 : 8 },
    y: { domain: labels, axis: null },
    marks: [
      Plot.barX(parts, {
        y: 'variant',
        x: 'ms',
        z: 'stage',
        order: stages,
        fill: 'color',
        insetTop: narrow ? 22 : 5,
        insetBottom: 5,
      }),
      narrow
        ? Plot.text(labels, { y: (label) => label, x: 0, text: (label) => label, dy: -13, textAnchor: 'start' })
        : Plot.axisY({ label: null, tickSize: 0 }),
    ],
  }))
  const keys = stages.map((stage) => {
    const sizes = rows.filter((row) => row.stage === stage).map(({ ms }) => show(number(ms)))
    return { title: `${stage} (${sizes.join(' / ')} ms)`, color: colorOf(stage) }
  })
  return html`${legend(keys)}${drawing}`
}

function sentence(summaries: readonly Summary[]): string {
  const real = summaries.find(({ variant }) => variant === 'argon2id')
  const token = summaries.find(({ variant }) => variant === 'token')
  const time = typicalRun(real, 'p50Ms')?.series.time ?? []
  const longest = time.toSorted((a, b) => number(b.ms) - number(a.ms))[0]
  if (longest === undefined) return 'Nothing was measured.'
  return (
    `At half the capacity a login spends most of its time in: ${longest.stage} (${quantity(number(longest.ms), 'ms')}). ` +
    `Without a hash, all processes together spend ${quantity(figure(token, 'processorMsPerAnswer'), 'ms')} of processor time on it.`
  )
}
