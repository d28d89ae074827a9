// What Redis does for a login, command by command.
import { show } from '../../src/figures.ts'
import type { Row, ScenarioResult } from '../../src/results.ts'
import { summarize } from '../../src/summary.ts'
import { bars } from '../bars.ts'
import { type Html, html } from '../html.ts'
import { figure, number, quantity, section, typicalRun } from '../section.ts'

/** What takes less of a login is noise. */
const LEAST_US = 1

export function redisSection(result: ScenarioResult): Html {
  const [summary] = summarize(result)
  if (summary === undefined) return section(result, 'It was not measured.', [])
  const rows = (typicalRun(summary, 'perSecond')?.series.commands ?? [])
    .filter(({ us }) => number(us) >= LEAST_US)
    .map((row) => ({ label: labelOf(row), value: number(row.us), color: 'var(--accent)' }))
  const says =
    `A login takes ${quantity(figure(summary, 'redisMsPerLogin'), 'ms')} of Redis's processor time. At 70 % of a core one Redis ` +
    `serves ${quantity(figure(summary, 'redisServesPerSecond'), 'logins a second')}.`
  return section(result, says, [
    html`<h4>Redis's processor time for one login, by command</h4>`,
    bars('Processor time of Redis for one login, by command', 'µs', rows),
  ])
}

function labelOf({ command, calls }: Row): string {
  return calls === undefined ? String(command) : `${command} × ${show(number(calls))}`
}
