// The results of a run, and the medians of its repeats.
import { execFileSync } from 'node:child_process'
import { cpus, release, totalmem } from 'node:os'
import { allCores, contenderCores } from '../contenders/contender.ts'
import type { Algorithm } from '../contenders/hashing.ts'

/** The figures of a moment; each row begins with its `second`. */
export type Row = Record<string, number>

export interface Measured {
  /** The end of a name tells the unit. */
  figures: Record<string, number>
  series?: Row[]
}

/** One contender, or one setting of it, measured once. */
export interface Run extends Measured {
  contender: string
  /** The hash, and for engines its load. */
  variant: string
  /** Per cent of the machine that others used just before. */
  backgroundPercent?: number | undefined
  failure?: string
}

export interface ScenarioResult {
  name: string
  /** Repeats follow one another in time. */
  runs: Run[]
}

/** What is measured, and how often. */
export interface Runs {
  repeat: number
  scenarios: ScenarioResult[]
}

export interface Results extends Runs {
  startedAt: string
  /** True when it was cut short, by a signal or an error. */
  interrupted: boolean
  machine: ReturnType<typeof describeMachine>
  commit: string
  bareHashMs: Record<Algorithm, number>
}

/**
 * The machine that the figures were measured on, without its name or its owner.
 * @param engine the engine of Spillway's workers
 */
export function describeMachine(engine: 'native' | 'packages') {
  return {
    processor: cpus()[0]?.model.trim() ?? 'unknown',
    cores: allCores.length,
    memoryGib: Math.round(totalmem() / 2 ** 30),
    system: `${process.platform} ${release()} ${process.arch}`,
    node: process.version,
    engine,
    /** Whether processes could be pinned to cores. */
    pinned: contenderCores !== undefined,
  }
}

/** The short hash of the commit, with `+` for changes on top; `unknown` outside a checkout. */
export function describeCommit(): string {
  try {
    const git = (...args: string[]) =>
      execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
    const changed = git('status', '--porcelain', '--untracked-files=no').trim() !== ''
    return git('rev-parse', '--short', 'HEAD').trim() + (changed ? '+' : '')
  } catch {
    return 'unknown'
  }
}

/** The mean of both middle values where their number is even; undefined without a value. */
export function median(values: readonly number[]): number | undefined {
  const sorted = values.toSorted((a, b) => a - b)
  const low = sorted[Math.floor((sorted.length - 1) / 2)]
  const high = sorted[Math.ceil((sorted.length - 1) / 2)]
  return low === undefined || high === undefined ? undefined : (low + high) / 2
}

/** The medians of all repeats that did not fail. */
export interface Summary {
  contender: string
  variant: string
  figures: Partial<Record<string, number>>
  series: readonly Row[]
}

/** One for each contender and variant that has figures, in the order in which they were measured. */
export function summarize({ runs }: ScenarioResult): Summary[] {
  const groups = new Map<string, Run[]>()
  for (const run of runs.filter(({ failure }) => failure === undefined)) {
    const key = JSON.stringify([run.contender, run.variant])
    groups.set(key, [...(groups.get(key) ?? []), run])
  }
  return [...groups.values()].flatMap((repeats) => {
    const [first] = repeats
    if (first === undefined) return []
    const { contender, variant } = first
    const seconds = Math.max(...repeats.map(({ series = [] }) => series.length))
    const series = Array.from({ length: seconds }, (_, n) =>
      medians(repeats.flatMap(({ series = [] }) => series.slice(n, n + 1))),
    )
    return [{ contender, variant, figures: medians(repeats.map(({ figures }) => figures)), series }]
  })
}

function medians(rows: readonly Row[]): Row {
  const names = new Set(rows.flatMap((row) => Object.keys(row)))
  return Object.fromEntries([...names].map((name) => [name, median(rows.flatMap((row) => row[name] ?? [])) ?? 0]))
}
