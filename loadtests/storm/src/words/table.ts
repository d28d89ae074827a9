// The table of a storm: what each probe took before it, in it and after it.
import type { StormResult } from '../result.ts'
import { milliseconds } from './figures.ts'

export const phases = ['calm', 'storm', 'after'] as const

export interface Table {
  /** Those of each phase, in the order of the phases. */
  columns: string[]
  rows: { name: string; cells: string[] }[]
}

export function table({ probes, settings: { timeoutS } }: StormResult): Table {
  return {
    columns: phases.flatMap(() => ['p50', 'p99']),
    rows: probes.map((probe) => ({
      name: probe.name,
      cells: phases.flatMap((phase) =>
        [probe[phase].p50Ms, probe[phase].p99Ms].map((ms) => milliseconds(ms, timeoutS)),
      ),
    })),
  }
}
