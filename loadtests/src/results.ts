// The results of a run: the JSON file from which reports and comparisons are made.
import type { Machine } from './machine.ts'

/** A row of a plot, with the scenario's own columns. */
export type Row = Record<string, number | string>

/** The results of one measurement. */
export interface Measured {
  /** By the names in figures.ts. */
  figures: Record<string, number>
  /** Rows for the scenario's plots. */
  series: Record<string, Row[]>
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
