// Figures that are easy to reckon with, and demands by them.
import assert from 'node:assert/strict'
import { type Figures, sourceOf } from '../src/figures.ts'
import { demandOf, parseOptions } from '../src/options.ts'
import type { Demand } from '../src/sizing.ts'

export const figures: Figures = {
  machine: 'a machine',
  measuredAt: '2026-11-21',
  costMs: { gateway: 1, worker: 1, redis: 0.1, postgres: 0.5 },
  hashEngine: 'an engine',
  hashMs: 9,
  turnaroundMs: 1,
  jobBytes: 2_000,
  memoryMib: { gateway: 100, worker: 80 },
  minimums: { machine: 'a machine', measuredAt: '2026-11-21', slots: 2, costs: [] },
}

/** What `pnpm size` makes of these arguments. */
export function demandBy(...args: string[]): Demand {
  const options = parseOptions(args)
  const demand = options && demandOf(options, { ...figures, hashSource: sourceOf(figures) })
  assert.ok(demand)
  return demand
}
