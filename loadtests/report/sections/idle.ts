// One login on a quiet machine, over the bare hash.
import type { ScenarioResult } from '../../src/results.ts'
import { summarize } from '../../src/summary.ts'
import { bars } from '../bars.ts'
import { contenderColor } from '../colors.ts'
import { type Html, html } from '../html.ts'
import { figure, quantity, section, titleOf } from '../section.ts'

export function idleSection(result: ScenarioResult): Html {
  const summaries = summarize(result)
  const rows = summaries.flatMap((summary) => {
    const value = figure(summary, 'overheadMs')
    return value === undefined
      ? []
      : [{ label: titleOf(summary.contender), value: Math.max(value, 0), color: contenderColor(summary.contender) }]
  })
  const ours = summaries.find(({ contender }) => contender === 'spillway')
  const says =
    `A login with Spillway takes ${quantity(figure(ours, 'p50Ms'), 'ms')} (median), ${quantity(figure(ours, 'overheadMs'), 'ms')} ` +
    `more than the bare hash, which takes ${quantity(figure(ours, 'bareHashMs'), 'ms')} there.`
  return section(result, says, [
    html`<h4>Median of a login, less the bare hash</h4>`,
    bars('Median of a login, less the bare hash', 'ms', rows),
  ])
}
