// The changes between two results, and whether each is more than the noise.
import type { Middle } from '../measure/noise.ts'
import type { Results } from './results.ts'
import { figureKind, show, summarize } from './summary.ts'

/** A change smaller than this is not worth a line, in per cent. */
const WORTH_PERCENT = 2

/** One line for each figure that both have and that changed. */
export function compare(old: Results, now: Results): string {
  const lines = now.scenarios.flatMap((scenario) => {
    const before = old.scenarios.find(({ name }) => name === scenario.name)
    if (before === undefined) return []
    const olds = new Map(
      summarize(before).map((summary) => [`${summary.contender}, ${summary.variant}`, summary.figures]),
    )
    return summarize(scenario).flatMap(({ contender, variant, figures }) =>
      Object.entries(figures).flatMap(([name, value]) => {
        const oldValue = olds.get(`${contender}, ${variant}`)?.[name]
        const line = oldValue && change(name, oldValue, value)
        return line ? [`  ${scenario.name}: ${contender}, ${variant}: ${line}`] : []
      }),
    )
  })
  const head = `Against ${old.commit} of ${old.startedAt.slice(0, 16).replace('T', ' ')} (changes under ${WORTH_PERCENT} % are left out):`
  return [head, ...(lines.length === 0 ? ['  nothing changed'] : lines)].join('\n')
}

function change(name: string, old: Middle, now: Middle): string | undefined {
  const kind = figureKind(name)
  if (kind === undefined || old.median === 0) return undefined
  const percent = (100 * (now.median - old.median)) / old.median
  if (Math.abs(percent) < WORTH_PERCENT) return undefined
  const better = percent > 0 === (kind.better === 'higher')
  const sign = percent > 0 ? '+' : ''
  return `${name} ${show(old.median)} → ${show(now.median)} ${kind.unit}, ${sign}${show(percent)} %, ${better ? 'better' : 'worse'} (${doubt(old, now)})`
}

/** The noise is how far repeats lay from their middle; one run alone knows nothing of it. */
function doubt(old: Middle, now: Middle): string {
  if (old.plusMinus === undefined || now.plusMinus === undefined) return 'noise unknown: measure both with --repeat 3'
  const noise = old.plusMinus + now.plusMinus
  const noisePercent = (100 * noise) / Math.abs(old.median)
  const within = Math.abs(now.median - old.median) <= noise
  return `${within ? 'within' : 'beyond'} the noise of ±${show(noisePercent)} %`
}
