// Jobs a second by the number of Redis.
import type { Html } from '@spillway/client/storm/report/html'
import { show } from '../../src/figures.ts'
import type { ScenarioResult } from '../../src/results.ts'
import { summarize } from '../../src/summary.ts'
import { bars } from '../bars.ts'
import { figure, quantity, section } from '../section.ts'

export function severalRedisSection(result: ScenarioResult): Html {
  const rows = summarize(result).flatMap((summary) => {
    const value = figure(summary, 'jobsPerSecond')
    const used = quantity(figure(summary, 'redisPercent'), '% of a core')
    return value === undefined ? [] : [{ label: summary.variant, value, used, color: 'var(--accent)' }]
  })
  const [first] = rows
  const says = rows.map(({ label, value, used }) => {
    const times = first === undefined || value === first.value ? '' : `, ${show(value / first.value)} times as many`
    return `${label} (${used} each): ${quantity(value, 'jobs a second')}${times}.`
  })
  return section(result, says.join(' '), [bars('Jobs a second without a hash', 'jobs a second', rows)])
}
