// The repeats of a measurement, drawn together.
import { type Middle, middle } from '../measure/noise.ts'
import type { Results, Run, ScenarioResult } from './results.ts'

export type Summary = ReturnType<typeof summarize>[number]

/** One for each contender and variant, in the order in which they were measured. */
export function summarize(scenario: ScenarioResult) {
  const groups = new Map<string, Run[]>()
  for (const run of scenario.runs) {
    const key = JSON.stringify([run.contender, run.variant])
    groups.set(key, [...(groups.get(key) ?? []), run])
  }
  return [...groups.values()].flatMap((runs) => {
    const [first] = runs
    if (first === undefined) return []
    const names = new Set(runs.flatMap((run) => Object.keys(run.figures)))
    /** Of all repeats that did not fail. */
    const figures: Record<string, Middle> = Object.fromEntries(
      [...names].flatMap((name) => {
        const values = runs.flatMap((run) => run.figures[name] ?? [])
        const found = middle(values)
        return found === undefined ? [] : [[name, found]]
      }),
    )
    /** The reason that the last repeat that failed has no figures. */
    const failure = runs.findLast((run) => run.failure !== undefined)?.failure
    const { contender, variant } = first
    return [{ contender, variant, figures, failure, runs }]
  })
}

/** What the native engine takes of what the fastest package does: a line for each way in which it was measured. */
export function shares(results: Results): string[] {
  return results.scenarios.flatMap(summarize).flatMap(({ contender, variant, figures }) => {
    const share = figures.ofPackagePercent
    if (share === undefined) return []
    const noise = share.plusMinus === undefined ? '' : ` ±${show(share.plusMinus)}`
    return [`${contender}, ${variant}: ${show(share.median)}${noise} % of what the fastest package takes`]
  })
}

// The figures that scenarios produce: the end of a name tells the unit and which way is better.

const kinds: readonly { ends: RegExp; unit: string; better: 'higher' | 'lower' }[] = [
  { ends: /persecond$/i, unit: '/s', better: 'higher' },
  { ends: /^(answered|efficiency|ideal|ofBullmq)Percent$/, unit: '%', better: 'higher' },
  { ends: /Percent$/, unit: '%', better: 'lower' },
  { ends: /Ms(Per[A-Z][a-z]+)?$/, unit: 'ms', better: 'lower' },
  { ends: /Mb$/, unit: 'MB', better: 'lower' },
]

/** The kind of a figure by the name in a JSON file; undefined for one this version does not know. */
export function figureKind(name: string) {
  return kinds.find(({ ends }) => ends.test(name))
}

/** A value as people read it: three digits, with a blank between thousands left to the locale. */
export function show(value: number): string {
  if (!Number.isFinite(value)) return '–'
  // A thousandth is not nothing.
  if (value !== 0 && Math.abs(value) < 0.1) return value.toLocaleString('en', { maximumSignificantDigits: 1 })
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2
  return value.toLocaleString('en', { minimumFractionDigits: 0, maximumFractionDigits: digits })
}
