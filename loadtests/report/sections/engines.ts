// The same hash from different packages.
import { NATIVE_NAME } from '@spillway/worker/native'
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
    const isNative = summary.contender === NATIVE_NAME
    const label = isNative ? `${NATIVE_NAME}, ${summary.variant}` : summary.contender
    const color = isNative || summary.contender.startsWith('@node-rs') ? 'var(--accent)' : 'var(--others)'
    return value === undefined ? [] : [{ label, value, color }]
  })
  const says =
    `One argon2id verify takes ${quantity(of('@node-rs/argon2'), 'ms')} of processor time with @node-rs/argon2, which every contender here ` +
    `uses, and ${quantity(of('argon2'), 'ms')} with argon2.`
  const native = summaries
    .filter(({ contender }) => contender === NATIVE_NAME)
    .map((summary) => `${summary.variant} ${quantity(figure(summary, 'ofPackagePercent'), '%')}`)
  const saysOfNative = `Of what @node-rs takes, in turn, ${NATIVE_NAME} takes: ${native.join(', ')}.`
  return section(result, native.length > 0 ? `${says} ${saysOfNative}` : says, [
    html`<h4>Processor time of one verify</h4>`,
    bars('Processor time of one verify', 'ms', rows),
  ])
}
