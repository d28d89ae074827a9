// A worker's core against a bare loop of the hash on it.
import type { ScenarioResult } from '../../src/results.ts'
import { summarize } from '../../src/summary.ts'
import { bars } from '../bars.ts'
import { contenderColor } from '../colors.ts'
import { type Html, html } from '../html.ts'
import { figure, quantity, section } from '../section.ts'

export function efficiencySection(result: ScenarioResult): Html {
  const [ours] = summarize(result)
  const [served, bare] = [figure(ours, 'perSecond') ?? 0, figure(ours, 'barePerSecond') ?? 0]
  const says =
    `A worker with a core of its own answers ${quantity(served, '/s')}: ` +
    `${quantity(figure(ours, 'efficiencyPercent'), '%')} of the ${quantity(bare, '/s')} of a bare loop there.`
  return section(result, says, [
    html`<h4>Hashes a second on one core</h4>`,
    bars('Hashes a second on one core', '/s', [
      { label: 'Logins with Spillway', value: served, color: contenderColor('spillway') },
      { label: 'The bare loop', value: bare, color: 'var(--others)' },
    ]),
  ])
}
