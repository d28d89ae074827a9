// A scenario is one promise, and a run against real processes that keeps or breaks it.
import { setTimeout as sleep } from 'node:timers/promises'
import { startTraffic, type Visit, type VisitorOptions } from '../load/visit.ts'
import { Findings, tookAt } from './findings.ts'
import type { Stage, System } from './stage/stage.ts'

export interface Scenario {
  name: string
  /** One sentence. */
  promise: string
  /** It measures a rate that processors bound: nothing else runs meanwhile. */
  alone?: true
  /** With others of this name it shares processes, so they run one after the other on one stage. */
  family?: string
  /** Starts the processes it needs, and ends them again unless it shares them. */
  run(stage: Stage): Promise<Findings>
}

// The frame of scenarios with a fault: steady visits before, during and after it.

interface UnderFault {
  perSecond: number
  /**
   * Breaks something and mends it again [nothing]. Resolves when it is mended, or broken for good.
   */
  fault?(findings: Findings): Promise<unknown>
  /** Changes to the visitor of all gateways. */
  visitor?: Partial<VisitorOptions>
  /** Durations of the calm before, and of the visits after the fault, in ms [2,000, 5,000]. */
  calmMs?: number
  afterMs?: number
}

/** The last of the time after a fault, in which all must go well again. */
const RECOVERED_MS = 1_500
/** A visit that takes longer than the calm's median by this is not back to normal. */
const NORMAL_EXTRA_MS = 1_000
/** How many of those that broke a promise are described. */
const EXAMPLES = 8

/** Checks what holds for every fault: each visit has a defined answer, and everything recovers. */
export async function underFault(system: System, options: UnderFault): Promise<Findings> {
  const { perSecond, calmMs = 2_000, afterMs = 5_000 } = options
  const findings = new Findings()
  const traffic = startTraffic({ ...system.visitor(), ...options.visitor }, perSecond)
  let [brokenAtMs, mendedAtMs] = [0, 0]
  let visits: Visit[] = []
  try {
    await sleep(calmMs)
    brokenAtMs = performance.now()
    await options.fault?.(findings)
    mendedAtMs = performance.now()
    await sleep(afterMs)
  } finally {
    // The traffic ends even when the fault throws: it must not run beside the next scenario.
    visits = await traffic.stop()
  }

  const calm = visits.filter(({ dueMs, tookMs }) => dueMs + tookMs < brokenAtMs)
  const usualMs = tookAt(calm, 0.5)
  const after = visits.filter(({ dueMs }) => dueMs >= mendedAtMs)
  const wentBadly = after.filter(({ end, tookMs }) => end !== 'verdict' || tookMs > usualMs + NORMAL_EXTRA_MS)
  const affected = visits.filter(({ end, dueMs, tookMs }) => end === 'verdict' && dueMs + tookMs >= brokenAtMs)
  const isRecovered = after.every(({ end, dueMs }) => end === 'verdict' || dueMs < mendedAtMs + afterMs - RECOVERED_MS)
  const slowestMs = Math.max(...visits.map(({ ticketed, tookMs }) => (ticketed ? 0 : tookMs)))
  findings.count(visits)
  findings.worstExtraMs = Math.max(0, ...affected.map(({ tookMs }) => tookMs - usualMs))
  findings.recoveryMs = Math.max(0, ...wentBadly.map(({ dueMs }) => dueMs - mendedAtMs))
  const wasCalm = calm.length > 0 && calm.every(({ end }) => end === 'verdict')
  findings.expect(wasCalm, 'not all went well before the fault')
  findings.expect(findings.failed === 0, `${findings.failed} visits had no defined answer`)
  findings.notes.push(`an answer without a ticket took ${(slowestMs / 1_000).toFixed(2)} s at most`)
  findings.expect(after.length > 0 && isRecovered, `not all was well again ${afterMs / 1_000} s after the fault`)
  if (findings.broken.length > 0) {
    findings.notes.push(...wentBadly.slice(0, EXAMPLES).map((visit) => describe(visit, mendedAtMs)))
  }
  return findings
}

function describe({ dueMs, tookMs, ticketed, detail }: Visit, mendedAtMs: number): string {
  const began = `${((dueMs - mendedAtMs) / 1_000).toFixed(2)} s after the end of the fault`
  return `a visit that began ${began} took ${(tookMs / 1_000).toFixed(2)} s to ${detail}${ticketed ? ' by ticket' : ''}`
}
