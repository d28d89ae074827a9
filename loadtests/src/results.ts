// The results of a run: the JSON file from which reports and comparisons are made.
import { execFileSync } from 'node:child_process'
import { cpus, release, totalmem } from 'node:os'
import { allCores, contenderCores } from '../measure/cores.ts'

/** A row of a plot, with the scenario's own columns. */
export type Row = Record<string, number | string>

/** The results of one measurement. */
export interface Measured {
  /** The end of a name tells the unit: summary.ts. */
  figures: Record<string, number>
  /** Rows for the scenario's plots. */
  series?: Record<string, Row[]>
}

/** One contender, or one setting of it, measured once. */
export interface Run extends Measured {
  contender: string
  /** The hash, the number of workers, or the endpoint. */
  variant: string
  /** Counted from 1. */
  repeat: number
  /** Per cent of the machine that others used just before. */
  backgroundPercent?: number
  /** The reason that there are no figures. */
  failure?: string
}

export interface ScenarioResult {
  name: string
  settings: Row
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

/** The short hash of the checked-out commit, with `+` for changes on top; `unknown` outside a checkout. */
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
