// The same hash from different packages.
import type { ScenarioResult } from '../../src/results.ts'
import { summarize } from '../../src/summary.ts'
import { bars } from '../bars.ts'
import { type Html, html } from '../html.ts'
import { figure, quantity, section } from '../section.ts'

export function enginesSection(result: ScenarioResult): Html {
  const summaries = summarize(result)
  const of = (name: string) =>
    figure(
      summaries.find(({ contender }) => contender === name),
      'hashProcessorMs',
    )
  const rows = summaries.flatMap((summary) => {
    const value = figure(summary, 'hashProcessorMs')
    const color = summary.contender.startsWith('@node-rs') ? 'var(--accent)' : 'var(--others)'
    return value === undefined ? [] : [{ label: summary.contender, value, color }]
  })
  const says =
    `One argon2id verify takes ${quantity(of('@node-rs/argon2'), 'ms')} of processor time with @node-rs/argon2, which every contender here ` +
    `uses, and ${quantity(of('argon2'), 'ms')} with argon2.`
  return section(result, says, [
    html`<h4>Processor time of one verify</h4>`,
    bars('Processor time of one verify', 'ms', rows),
  ])
}
