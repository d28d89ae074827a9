// Scenarios in which one gateway is offered more and more, step by step.
import { moveTo } from '@spillway/local/processes/processor-time'
import { ask } from '@spillway/local/rig/api-client'
import { allCores, contenderCores } from '../measure/cores.ts'
import type { Findings, Scenario } from './scenario.ts'
import type { Stage } from './stage/stage.ts'
import { type OwnSystem, onOwnRedis, type System, type SystemOptions } from './stage/system.ts'

/** A run on one gateway, on a processor of its own where that can be had, and one worker; load and database have the other ones. */
export function onOneGateway(
  options: SystemOptions,
  run: (system: OwnSystem, url: string, stage: Stage) => Promise<Findings>,
): Scenario['run'] {
  const onRedis = onOwnRedis({ ...options, gateways: 0, workers: 1 }, async (system, stage) => {
    const { url } = await system.gateway(contenderCores ? { cores: [0] } : {})
    await system.knowsWorkers(1)
    return await run(system, url, stage)
  })
  return async (stage) => {
    const pids = [process.pid, stage.postgres.pid()]
    // Processes that are started from here inherit the processors.
    for (const pid of pids) if (contenderCores) moveTo(pid, contenderCores)
    try {
      return await onRedis(stage)
    } finally {
      for (const pid of pids) moveTo(pid, allCores)
    }
  }
}

/** How long the slowest of some logins takes, one after the other, in milliseconds; infinite when one gets no verdict. */
export async function slowestLogin({ gateways, login }: System, count: number): Promise<number> {
  let slowestMs = 0
  for (let n = 0; n < count; n++) {
    const { status, tookMs } = await ask(gateways[0]?.url ?? '', '/v1/login', { body: login(4_000 + n) })
    slowestMs = Math.max(slowestMs, status === 200 ? tookMs : Number.POSITIVE_INFINITY)
  }
  return slowestMs
}

export interface StepResult {
  /** On the screen. */
  name: string
  /** Verdicts a second. */
  goodput: number
  /** The slowest of the logins after it, in milliseconds. */
  freshMs: number
}

/** At no step less may be done than this share of the most, and after it every login must get its verdict. */
export function expectSteady(findings: Findings, steps: readonly StepResult[], share: number): void {
  const peak = Math.max(...steps.map(({ goodput }) => goodput))
  for (const { name, goodput, freshMs } of steps) {
    const [rate, fresh] = [goodput.toFixed(1), freshMs.toFixed(0)]
    findings.notes.push(`${name}: ${rate}/s, a login after it ${fresh} ms`)
    findings.expect(goodput >= peak * share, `at ${name} ${rate}/s succeeded of ${peak.toFixed(1)}`)
    findings.expect(Number.isFinite(freshMs), `a login after ${name} got no verdict`)
  }
}
