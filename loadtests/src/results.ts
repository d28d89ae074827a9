// The results of a run, and the JSON file of them from which the report is made.

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
  /** The end of a name tells the unit: summary.ts. */
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
