// The results of a run, the JSON file of them from which the report is made, and their medians.
import { execFileSync } from 'node:child_process'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { cpus, release, totalmem } from 'node:os'
import { join } from 'node:path'
import { UserError } from '@spillway/infra/processes/command-line'
import { defaultStateDir } from '@spillway/infra/processes/repository'
import { allCores, contenderCores } from '../contenders/contender.ts'

/** A row of a plot, with the scenario's own columns. */
export type Row = Record<string, number | string>

export interface Measured {
  /** The end of a name tells the unit. */
  figures: Record<string, number>
  series?: Record<string, Row[]>
}

/** One contender, or one setting of it, measured once. */
export interface Run extends Measured {
  contender: string
  /** The hash, the number of workers, or the endpoint. */
  variant: string
  /** Per cent of the machine that others used just before. */
  backgroundPercent?: number
  failure?: string
}

export interface ScenarioResult {
  name: string
  settings: Row
  /** Repeats follow one another in time. */
  runs: Run[]
}

export interface Results {
  format: 2
  startedAt: string
  /** True when it was cut short, by a signal or an error. */
  interrupted: boolean
  machine: Machine
  commit: string
  settings: Row
  scenarios: ScenarioResult[]
}

// The machine that the figures were measured on, without its name or its owner.

type Machine = ReturnType<typeof describeMachine>

/** @param engine the engine of Spillway's workers */
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

// The file.

/** Named for the moment, in the ignored folder that keeps what runs leave behind. */
export function defaultResultsFile(): string {
  return join(defaultStateDir, 'load', `${new Date().toISOString().slice(0, 19).replaceAll(':', '-')}.json`)
}

/** @throws {@link UserError} for a file that is not there or not of this format */
export function readResults(file: string): Results {
  let found: unknown
  try {
    found = JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new UserError(`${file} cannot be read as results: ${error instanceof Error ? error.message : error}.`)
  }
  if (isResults(found)) return found
  throw new UserError(
    `${file} holds no results of this version's format: measure again with "pnpm load --json ${file}".`,
  )
}

function isResults(value: unknown): value is Results {
  return typeof value === 'object' && value !== null && 'format' in value && value.format === 2 && 'scenarios' in value
}

/** Four digits: more are noise. Whole or not at all: an interruption leaves the last state. */
export function writeResults(file: string, results: Results): void {
  const short = (_name: string, value: unknown) => (typeof value === 'number' ? Number(value.toPrecision(4)) : value)
  writeFileSync(`${file}.new`, `${JSON.stringify(results, short)}\n`)
  renameSync(`${file}.new`, file)
}

// The repeats of a measurement, drawn together.

/** The mean of both middle values where their number is even; undefined without a value. */
export function median(values: readonly number[]): number | undefined {
  const sorted = values.toSorted((a, b) => a - b)
  const low = sorted[Math.floor((sorted.length - 1) / 2)]
  const high = sorted[Math.ceil((sorted.length - 1) / 2)]
  return low === undefined || high === undefined ? undefined : (low + high) / 2
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
    /** The medians of all repeats that did not fail. */
    const figures: Record<string, number | undefined> = Object.fromEntries(
      [...names].map((name) => [name, median(runs.flatMap((run) => run.figures[name] ?? []))]),
    )
    const { contender, variant } = first
    return [{ contender, variant, figures, runs }]
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

/** The repeat whose rate lies in the middle: its curves are drawn. */
export function typicalRun({ figures, runs }: Summary): Run | undefined {
  const name = 'kneePerSecond' in figures ? 'kneePerSecond' : 'perSecond'
  const middle = figures[name] ?? 0
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
