// A Spillway whose hashes are real and dear: one slot does some thirty a second. Twenty times as many are few people, and gateway, database and
// load generator cost little beside the hashes. All share the machine's cores.
import { setTimeout as sleep } from 'node:timers/promises'
import { ask } from '@spillway/local/rig/api-client'
import { DEAR_PASSES } from '../contenders/hashing.ts'
import { createVisitor, type Visitor, type VisitorOptions } from '../load/visit.ts'
import { middle } from '../measure/noise.ts'
import type { Findings, Scenario } from './scenario.ts'
import type { Stage } from './stage/stage.ts'
import { type OwnSystem, onOwnRedis } from './stage/system.ts'

export const credential = 'dear'
const size = {
  credential,
  gateways: 1,
  workers: 1,
  workerEnv: { WORKER_CONCURRENCY: '1', ARGON2_TIME: String(DEAR_PASSES) },
} as const

/** Held, all of them: enough that a slot never waits for a job. */
const CALLERS = 12
const SETTLING_MS = 2_000
const COUNTED_MS = 6_000
const LOGINS = 7
/** A login afterwards takes at most so many times what it took before. */
const AS_QUICK = 2
const OVER_AFTER_MS = 2_000
/** A held request is answered after LOGIN_WAIT_MS, 8 s, and a refusal is paced for some seconds. */
const ANSWER_MS = 30_000
const PATIENCE_MS = 330_000

export interface DearLine {
  system: OwnSystem
  stage: Stage
  url: string
  /** Logins a second of a few who are all held, and come again at once. */
  capacity(): Promise<number>
  /** People who come back as pages do, until they are in. */
  people(changes?: Partial<VisitorOptions>): Visitor
  /** Notes what the next login takes, two seconds later, beside what it took at the beginning. */
  expectCalm(findings: Findings, after: string): Promise<void>
}

export function onDearLine(run: (line: DearLine) => Promise<Findings>): Scenario['run'] {
  return onOwnRedis(size, async (system, stage) => {
    const url = system.gateways[0]?.url ?? ''
    const people: DearLine['people'] = (changes) =>
      createVisitor({
        ...system.visitor(),
        tries: Number.POSITIVE_INFINITY,
        patienceMs: PATIENCE_MS,
        timeoutMs: ANSWER_MS,
        ...changes,
      })
    const usualMs = () => usualLogin(system, url)
    const capacity = () => loginsOf(people(), CALLERS, { settlingMs: SETTLING_MS, countedMs: COUNTED_MS })
    // Compiles what is on the way, and lets the worker see what its hashes cost.
    await capacity()
    const idleMs = await usualMs()
    return await run({
      ...{ system, stage, url, capacity, people },
      async expectCalm(findings, after) {
        await sleep(OVER_AFTER_MS)
        const calmMs = await usualMs()
        findings.notes.push(`a login after ${after} ${calmMs.toFixed(0)} ms, before all ${idleMs.toFixed(0)}`)
        findings.expect(
          calmMs <= idleMs * AS_QUICK,
          `a login after ${after} took ${(calmMs / idleMs).toFixed(2)} of before`,
        )
      },
    })
  })
}

/** Verdicts a second of callers that come again as soon as they are in. */
export async function loginsOf(
  people: Visitor,
  callers: number,
  { settlingMs, countedMs }: { settlingMs: number; countedMs: number },
): Promise<number> {
  const fromMs = performance.now() + settlingMs
  const untilMs = fromMs + countedMs
  let number = 0
  let counted = 0
  async function call(): Promise<void> {
    while (performance.now() < untilMs) {
      const { end } = await people.visit(number++)
      const nowMs = performance.now()
      if (end === 'verdict' && nowMs >= fromMs && nowMs < untilMs) counted++
    }
  }
  await Promise.all(Array.from({ length: callers }, call))
  people.close()
  return (counted * 1_000) / countedMs
}

/** The median of some logins, one after the other; infinite when one of them gets no verdict. */
async function usualLogin({ login }: OwnSystem, url: string): Promise<number> {
  const tookMs: number[] = []
  for (let n = 0; n < LOGINS; n++) {
    const { status, tookMs: ms } = await ask(url, '/v1/login', { body: login(4_000 + n) })
    tookMs.push(status === 200 ? ms : Number.POSITIVE_INFINITY)
  }
  return tookMs.includes(Number.POSITIVE_INFINITY) ? Number.POSITIVE_INFINITY : (middle(tookMs)?.median ?? 0)
}
