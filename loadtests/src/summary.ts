// The repeats of a measurement, drawn together.
import { type Middle, middle } from '../measure/noise.ts'
import type { Run, ScenarioResult } from './results.ts'

export interface Summary {
  contender: string
  variant: string
  /** The figures of all repeats that did not fail. */
  figures: Record<string, Middle>
  /** The reason that the last repeat that failed has no figures. */
  failure?: string
  /** The repeats themselves. */
  runs: Run[]
}

/** One for each contender and variant, in the order in which they were measured. */
export function summarize(scenario: ScenarioResult): Summary[] {
  const groups = new Map<string, Run[]>()
  for (const run of scenario.runs) {
    const key = JSON.stringify([run.contender, run.variant])
    groups.set(key, [...(groups.get(key) ?? []), run])
  }
  return [...groups.values()].flatMap((runs) => {
    const [first] = runs
    if (first === undefined) return []
    const names = new Set(runs.flatMap((run) => Object.keys(run.figures)))
    const figures = Object.fromEntries(
      [...names].flatMap((name) => {
        const values = runs.flatMap((run) => run.figures[name] ?? [])
        const found = middle(values)
        return found === undefined ? [] : [[name, found]]
      }),
    )
    const failure = runs.findLast((run) => run.failure !== undefined)?.failure
    return [
      { contender: first.contender, variant: first.variant, figures, runs, ...(failure !== undefined && { failure }) },
    ]
  })
}
