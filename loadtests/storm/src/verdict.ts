// What the figures of a storm say about its probes.
import type { ProbeResult, StormResult } from './result.ts'

export interface Verdict {
  /** Within the limit when it was calm, and over it in the storm. */
  slowed: ProbeResult[]
  /** Over the limit before anyone logged in: the storm says nothing about them. */
  slowBefore: ProbeResult[]
  /** Within the limit in the storm. */
  within: ProbeResult[]
}

/** A probe that was not measured, because the storm was interrupted, is in no list. */
export function judge({ probes, settings: { p99Ms: limitMs } }: StormResult): Verdict {
  const measured = probes.filter(({ calm, storm }) => calm.p99Ms !== undefined && storm.p99Ms !== undefined)
  const isOver = (p99Ms: number | undefined) => p99Ms !== undefined && p99Ms > limitMs
  return {
    slowed: measured.filter(({ calm, storm }) => !isOver(calm.p99Ms) && isOver(storm.p99Ms)),
    slowBefore: measured.filter(({ calm }) => isOver(calm.p99Ms)),
    within: measured.filter(({ calm, storm }) => !isOver(calm.p99Ms) && !isOver(storm.p99Ms)),
  }
}

/** The probes that took more than they may in the storm. */
export function missed({ probes, settings: { p99Ms: limitMs } }: StormResult): ProbeResult[] {
  return probes.filter(({ storm }) => storm.p99Ms !== undefined && storm.p99Ms > limitMs)
}
