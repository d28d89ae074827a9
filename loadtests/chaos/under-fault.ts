// The frame of the scenarios in which something breaks: steady visits before, during and after it, and what they noticed.
import { setTimeout as sleep } from 'node:timers/promises'
import { countVisits, expect, type Findings } from './findings.ts'
import type { System } from './stage/system.ts'
import { startTraffic } from './traffic/traffic.ts'
import { createVisitor, type Visit, type VisitorOptions } from './traffic/visit.ts'

export interface UnderFault {
  system: System
  visitor: VisitorOptions
  perSecond: number
  /** Breaks it and mends it again; resolves when it is mended, or at the moment it broke if nothing can be mended. */
  fault(): Promise<void>
  /** How long the calm before lasts, and how long it is watched after, in milliseconds [2,000, 7,000]. */
  calmMs?: number
  afterMs?: number
  /** Within which all must go well again [5,000]. */
  recoveryLimitMs?: number
  /** The longest a visit without a ticket may take to any answer, in milliseconds. */
  answerLimitMs: number
}

/** A visit that takes longer than the calm's median by this is not back to normal. */
const NORMAL_EXTRA_MS = 1_000
/** How many of those that broke a promise are described. */
const EXAMPLES = 8

/** Checks what holds for every fault: each visit has a defined answer in time, everything recovers, nothing crashes. */
export async function underFault(options: UnderFault): Promise<Findings & { visits: Visit[] }> {
  const { system, perSecond, calmMs = 2_000, afterMs = 7_000, recoveryLimitMs = 5_000, answerLimitMs } = options
  const visitor = createVisitor(options.visitor)
  const traffic = startTraffic(visitor, perSecond)
  await sleep(calmMs)
  const brokenAtMs = performance.now()
  await options.fault()
  const mendedAtMs = performance.now()
  await sleep(afterMs)
  const visits = await traffic.stop()
  visitor.close()

  const calm = visits.filter(({ dueMs, tookMs }) => dueMs + tookMs < brokenAtMs)
  const calmMsMedian = medianOf(calm.map(({ tookMs }) => tookMs))
  const after = visits.filter(({ dueMs }) => dueMs >= mendedAtMs)
  const wentBadly = after.filter(({ end, tookMs }) => end !== 'verdict' || tookMs > calmMsMedian + NORMAL_EXTRA_MS)
  const affected = visits.filter(({ dueMs, tookMs }) => dueMs + tookMs >= brokenAtMs)
  const findings: Findings = {
    ...countVisits(visits),
    worstExtraMs: Math.max(
      0,
      ...affected.filter(({ end }) => end === 'verdict').map(({ tookMs }) => tookMs - calmMsMedian),
    ),
    recoveryMs: Math.max(0, ...wentBadly.map(({ dueMs }) => dueMs - mendedAtMs)),
  }
  const slow = visits.filter(({ ticketed, tookMs }) => !ticketed && tookMs > answerLimitMs)
  expect(findings, calm.length > 0 && calm.every(({ end }) => end === 'verdict'), 'not all went well before the fault')
  expect(findings, findings.failed === 0, `${findings.failed} visits had no defined answer`)
  expect(findings, slow.length === 0, `${slow.length} answers took longer than ${answerLimitMs} ms`)
  expect(findings, (findings.recoveryMs ?? 0) <= recoveryLimitMs, `not back to normal within ${recoveryLimitMs} ms`)
  for (const complaint of system.complaints()) findings.broken.push(complaint)
  if (findings.broken.length > 0) {
    findings.notes.push(...[...slow, ...wentBadly].slice(0, EXAMPLES).map((visit) => describe(visit, mendedAtMs)))
    findings.notes.push(...system.warnings())
  }
  return { ...findings, visits }
}

function describe({ dueMs, tookMs, ticketed, detail }: Visit, mendedAtMs: number): string {
  const began = `${((dueMs - mendedAtMs) / 1_000).toFixed(2)} s after the end of the fault`
  return `a visit that began ${began} took ${(tookMs / 1_000).toFixed(2)} s to ${detail}${ticketed ? ' by ticket' : ''}`
}

function medianOf(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}
