// The repeats of a measurement, drawn together.
import type { Run, ScenarioResult } from './results.ts'

type Middle = NonNullable<ReturnType<typeof middle>>

/** @returns undefined when there is no value */
export function middle(values: readonly number[]) {
  const sorted = values.toSorted((a, b) => a - b)
  const low = sorted[Math.floor((sorted.length - 1) / 2)]
  const high = sorted[Math.ceil((sorted.length - 1) / 2)]
  const least = sorted[0]
  const greatest = sorted.at(-1)
  if (low === undefined || high === undefined || least === undefined || greatest === undefined) return undefined
  return {
    median: (low + high) / 2,
    /** Half the distance between the least and the greatest; undefined when there was only one. */
    plusMinus: sorted.length > 1 ? (greatest - least) / 2 : undefined,
    runs: sorted.length,
  }
}

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

// The figures that scenarios produce: the end of a name tells the unit.

const units: readonly [ends: RegExp, unit: string][] = [
  [/persecond$/i, '/s'],
  [/Percent$/, '%'],
  [/Ms$/, 'ms'],
]

export function unitOf(name: string): string {
  return units.find(([ends]) => ends.test(name))?.[1] ?? ''
}

/** A value as people read it: three digits, with a blank between thousands left to the locale. */
export function show(value: number): string {
  if (!Number.isFinite(value)) return '–'
  // A thousandth is not nothing.
  if (value !== 0 && Math.abs(value) < 0.1) return value.toLocaleString('en', { maximumSignificantDigits: 1 })
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2
  return value.toLocaleString('en', { minimumFractionDigits: 0, maximumFractionDigits: digits })
}

/** The median of a figure; undefined without one. */
export function figure(summary: Summary | undefined, name: string): number | undefined {
  return summary?.figures[name]?.median
}

/** The repeat whose rate lies in the middle: its curves are drawn. */
export function typicalRun({ figures, runs }: Summary): Run | undefined {
  const name = 'kneePerSecond' in figures ? 'kneePerSecond' : 'perSecond'
  const middle = figures[name]?.median ?? 0
  const distance = (run: Run) => Math.abs((run.figures[name] ?? 0) - middle)
  return runs.filter(({ failure }) => failure === undefined).toSorted((a, b) => distance(a) - distance(b))[0]
}

/** The same figures, with the curves of typical runs alone: three quarters of a file are curves. */
export function withoutOtherCurves(scenario: ScenarioResult): ScenarioResult {
  const drawn = new Set(summarize(scenario).map(typicalRun))
  const runs = scenario.runs.map((run) => {
    const { series: _, ...rest } = run
    return drawn.has(run) ? run : rest
  })
  return { ...scenario, runs }
}

/** `12.3 ms`, or a dash for what was not measured. */
export function quantity(value: number | undefined, unit: string): string {
  return value === undefined ? '–' : `${show(value)} ${unit}`
}

/** A number from a row, which may hold text as well. */
export function number(value: number | string | undefined): number {
  return typeof value === 'number' ? value : 0
}
