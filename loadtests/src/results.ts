// What a run writes down: the JSON file that reports and comparisons are made of.
import type { Machine } from './machine.ts'

/** A row of a plot; what its columns mean is the scenario's business. */
export type Row = Record<string, number | string>

/** What one measurement found. */
export interface Measured {
  /** By the names in figures.ts. */
  figures: Record<string, number>
  /** HdrHistograms in microseconds, compressed, in base64. */
  histograms: Record<string, string>
  /** Rows for the scenario's plots. */
  series: Record<string, Row[]>
}

/** One contender, or one setting of it, measured once. */
export interface Run extends Measured {
  contender: string
  /** What else was varied: the hash, the number of workers, the endpoint. */
  variant: string
  /** Counted from 1. */
  repeat: number
  seconds: number
  /** Per cent of the machine that others used just before. */
  backgroundPercent?: number
  /** Why there are no figures. */
  failure?: string
}

export interface ScenarioResult {
  name: string
  settings: Row
  runs: Run[]
}

export interface Results {
  format: 1
  startedAt: string
  /** True when it was cut short, by a signal or an error. */
  interrupted: boolean
  machine: Machine
  commit: string
  settings: Row
  scenarios: ScenarioResult[]
}
