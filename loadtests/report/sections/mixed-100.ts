// A mix of hashing and writes.
import type { ScenarioResult } from '../../src/results.ts'
import { summarize } from '../../src/summary.ts'
import { bars } from '../bars.ts'
import { contenderColor } from '../colors.ts'
import { type Html, html } from '../html.ts'
import { figure, quantity, section, titleOf } from '../section.ts'

export function mixedSection(result: ScenarioResult): Html {
  const summaries = summarize(result)
  const rowsOf = (name: string) =>
    summaries.flatMap((summary) => {
      const value = figure(summary, name)
      return value === undefined
        ? []
        : [{ label: titleOf(summary.contender), value, color: contenderColor(summary.contender) }]
    })
  const rows = rowsOf('perSecond')
  const ours = summaries.find(({ contender }) => contender === 'spillway')
  const best = rows.toSorted((a, b) => b.value - a.value)[0]
  const says =
    best === undefined
      ? 'Nothing was measured.'
      : `Spillway answers ${quantity(figure(ours, 'perSecond'), 'requests a second')}, with p95 ${quantity(figure(ours, 'p95Ms'), 'ms')}; ` +
        `the most anyone answers is ${quantity(best.value, 'a second')} (${best.label}).`
  return section(result, says, [
    html`<h4>Requests answered a second</h4>`,
    bars('Requests answered a second', 'requests a second', rows),
    html`<h4>p95 of all requests</h4>`,
    bars('p95 of all requests', 'ms', rowsOf('p95Ms')),
  ])
}
