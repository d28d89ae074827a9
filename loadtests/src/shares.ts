// What the native engine takes of what the fastest package does: a line for each way in which it was measured.
import { show } from './figures.ts'
import type { Results } from './results.ts'
import { summarize } from './summary.ts'

export function shares(results: Results): string[] {
  return results.scenarios.flatMap(summarize).flatMap(({ contender, variant, figures }) => {
    const share = figures.ofPackagePercent
    if (share === undefined) return []
    const noise = share.plusMinus === undefined ? '' : ` ±${show(share.plusMinus)}`
    return [`${contender}, ${variant}: ${show(share.median)}${noise} % of what the fastest package takes`]
  })
}
