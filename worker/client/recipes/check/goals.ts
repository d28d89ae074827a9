// What the change is for: the table of what was measured, and what of it is not as it should be.
import type { Measured } from './storm.ts'

export const modes = ['before', 'after, without Redis', 'after, with the queue'] as const
export type Mode = (typeof modes)[number]

export interface Row extends Measured {
  recipe: string
  mode: Mode
}

const NEIGHBOUR_P99_MS = 50

/** A row for each mode, as console.table takes them. */
export function toTable(rows: readonly Row[]): object[] {
  return rows.map(({ recipe, mode, loginsPerSecond, failed, p99Ms }) => ({
    recipe,
    mode,
    'logins/s': Number(loginsPerSecond.toFixed(1)),
    failed,
    'file, p99 ms': Number(p99Ms.file.toFixed(1)),
    'time, p99 ms': Number(p99Ms.time.toFixed(1)),
  }))
}

/** One sentence for each goal that was missed. Logins must not become fewer, and neighbours are to be answered in time. */
export function goalsMissed(rows: readonly Row[]): string[] {
  return rows.flatMap(({ recipe, mode, loginsPerSecond, failed, p99Ms }) => {
    if (mode === 'before') return []
    const before = rows.find((row) => row.recipe === recipe && row.mode === 'before')?.loginsPerSecond ?? 0
    const name = `${recipe}, ${mode}:`
    return [
      ...(p99Ms.file < NEIGHBOUR_P99_MS ? [] : [`${name} the file took ${Math.round(p99Ms.file)} ms at p99`]),
      ...(p99Ms.time < NEIGHBOUR_P99_MS ? [] : [`${name} the time took ${Math.round(p99Ms.time)} ms at p99`]),
      ...(loginsPerSecond >= before
        ? []
        : [`${name} ${loginsPerSecond.toFixed(1)} logins/s, before ${before.toFixed(1)}`]),
      ...(failed === 0 ? [] : [`${name} ${failed} logins failed`]),
    ]
  })
}
