// Stacked bars: what a login waits for, and what the processors do for it.
import type { Html } from '@spillway/storm/report/report'
import type { Row, ScenarioResult } from '../../src/results.ts'
import { type Summary, show, summarize } from '../../src/summary.ts'
import { bars, partColors } from '../chart.ts'
import { figure, number, quantity, type Section, section, typicalRows } from '../section.ts'

const titles: Record<string, string> = { argon2id: 'argon2id', token: 'no hash' }

export function profileSection(result: ScenarioResult): Section {
  const summaries = summarize(result).filter(({ figures }) => figures.p50Ms)
  const rowsOf = (series: string) =>
    summaries.flatMap((summary) =>
      typicalRows(summary, 'p50Ms', series).map((row) => ({ ...row, variant: titles[summary.variant] ?? '' })),
    )
  return section(result, sentence(summaries), [
    stack('Time of a login', rowsOf('time')),
    stack('Processor time of a login, by process', rowsOf('processor')),
  ])
}

function stack(title: string, rows: readonly Row[]): Html {
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

function sentence(summaries: readonly Summary[]): string {
  const real = summaries.find(({ variant }) => variant === 'argon2id')
  const token = summaries.find(({ variant }) => variant === 'token')
  const longest = typicalRows(real, 'p50Ms', 'time').toSorted((a, b) => number(b.ms) - number(a.ms))[0]
  if (longest === undefined) return 'Nothing was measured.'
  return (
    `At half the capacity a login spends most of its time in: ${longest.stage} (${quantity(number(longest.ms), 'ms')}). ` +
    `Without a hash, all processes together spend ${quantity(figure(token, 'processorMsPerAnswer'), 'ms')} of processor time on it.`
  )
}
