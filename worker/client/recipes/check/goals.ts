// What the change is for: the table of what was measured, and what of it is not as it should be.
import { neighbours } from './recipes.ts'
import type { Measured } from './storm.ts'

/** `without hashing` is the framework's own work: the version before the change, with as many logins a second as without Redis. */
export const modes = ['before', 'after, without Redis', 'after, with the queue', 'without hashing'] as const
export type Mode = (typeof modes)[number]
const isJudged = (mode: Mode): boolean => mode.startsWith('after')

export interface Row extends Measured {
  recipe: string
  mode: Mode
  /** Per cent of the machine, just before. */
  takenByOthers: number | undefined
}

const NEIGHBOUR_P99_MS = 50
/**
 * Where the framework alone keeps neighbours waiting for longer: so many times as long as it does. Redis and what hashes are on the same
 * core.
 */
const TIMES_THE_FRAMEWORK = 2
/** Others that take more than this of the machine are told of. */
const BUSY_PERCENT = 10

/** A row for each mode, as console.table takes them. */
export function toTable(rows: readonly Row[]): object[] {
  return rows.map(({ recipe, mode, loginsPerSecond, reasons, p99Ms, takenByOthers }) => ({
    recipe,
    mode,
    'logins/s': Number(loginsPerSecond.toFixed(1)),
    'without success': Object.entries(reasons)
      .map(([why, count]) => `${count} × ${why}`)
      .join(', '),
    'file, p99 ms': Number(p99Ms.file.toFixed(1)),
    'time, p99 ms': Number(p99Ms.time.toFixed(1)),
    'others, %': takenByOthers === undefined ? undefined : Math.round(takenByOthers),
  }))
}

/**
 * One sentence for each goal that was missed: neighbours are answered in time, logins do not become fewer, and become twice as many where workers
 * have the native engine.
 */
export function goalsMissed(rows: readonly Row[], hasEngine: boolean): string[] {
  return rows.flatMap(({ recipe, mode, loginsPerSecond, p99Ms }) => {
    if (!isJudged(mode)) return []
    const other = (wanted: Mode) => rows.find((row) => row.recipe === recipe && row.mode === wanted)
    const before = other('before')?.loginsPerSecond ?? 0
    const times = hasEngine && mode === 'after, with the queue' ? 2 : 1
    const frameworkMs = other('without hashing')?.p99Ms
    const late = neighbours
      .map((name) => ({
        name,
        ms: p99Ms[name],
        allowedMs: Math.max(NEIGHBOUR_P99_MS, TIMES_THE_FRAMEWORK * (frameworkMs?.[name] ?? 0)),
      }))
      .filter(({ ms, allowedMs }) => !(ms < allowedMs))
    const few = loginsPerSecond < times * before
    return [
      ...late.map(
        ({ name, ms, allowedMs }) => `the ${name} took ${Math.round(ms)} ms at p99, not ${Math.round(allowedMs)}`,
      ),
      ...(few ? [`${loginsPerSecond.toFixed(1)} logins/s, not ${(times * before).toFixed(1)}`] : []),
    ].map((missed) => `${recipe}, ${mode}: ${missed}`)
  })
}

/** Whether the machine had other things to do, so that the figures say little. */
export function wasBusy(rows: readonly Row[]): boolean {
  return rows.some(({ takenByOthers = 0 }) => takenByOthers > BUSY_PERCENT)
}
