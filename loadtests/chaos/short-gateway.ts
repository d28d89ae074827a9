// Scenarios in which the gateway is what is short: workers wait instead of hashing, there are plenty of them, and the gateway has a share of
// a core. Connections are kept, as an ingress keeps them.
import { fileURLToPath } from 'node:url'
import { pinned } from '@spillway/local/processes/processor-time'
import { contenderCores, holdToShare } from '../measure/cores.ts'
import { onOneGateway } from './one-gateway.ts'
import type { Findings, Scenario } from './scenario.ts'
import type { Stage } from './stage/stage.ts'
import type { System } from './stage/system.ts'
import type { RushOptions, RushResult } from './traffic/rush.ts'

/** Each "hash" waits 20 ms in one of these slots: far more than one gateway passes on. */
const credential = 'wait-20'
const workerEnv = { WORKER_CONCURRENCY: '200' }

/**
 * The gateway's share of a core. With a whole one, worker, Redis, PostgreSQL and generator on the other core were what was short on two
 * processors: the gateway idled for an eighth of the time, and some runs refused nothing.
 */
const GATEWAY_SHARE = 0.6
const WARM_UP = { perSecond: 400, connections: 200, durationS: 8, settlingS: 0 }

const logins = { credential } as const

/** Runs it on a warm gateway that is held to its share. */
export function onShortGateway(run: (system: System, url: string, stage: Stage) => Promise<Findings>): Scenario['run'] {
  return onOneGateway({ credential, workerEnv }, async (system, url, stage) => {
    await rush(stage, { url, sends: logins, ...WARM_UP })
    const slowed = holdToShare([system.gateways[0]?.pid ?? 0], GATEWAY_SHARE)
    try {
      return await run(system, url, stage)
    } finally {
      await slowed.close()
    }
  })
}

/** Sends requests from a process of its own: this one is busy with the logs of the others. */
export async function rush({ keeper }: Stage, options: RushOptions, cores = contenderCores): Promise<RushResult> {
  const [command = '', ...args] = pinned([process.execPath, '--import', 'tsx', program, JSON.stringify(options)], cores)
  return JSON.parse(await keeper.run({ command, args }))
}

/** Sends logins of the gateway's accounts, and counts their answers. */
export async function rushLogins(
  stage: Stage,
  options: Omit<RushOptions, 'sends'>,
  findings: Findings,
): Promise<{ ok: number; busy: number; slowestMs: number }> {
  const { statuses, timeouts, errors, slowestMs } = await rush(stage, { sends: logins, ...options })
  const { 200: ok = 0, 202: tickets = 0, 503: busy = 0 } = statuses
  const answers = answersOf(statuses)
  findings.requests += answers + timeouts + errors
  findings.succeeded += ok
  findings.ticketed += tickets
  findings.refused += busy
  findings.failed += answers - ok - tickets - busy + timeouts + errors
  return { ok, busy, slowestMs }
}

/** Whatever their status is. */
export function answersOf(statuses: RushResult['statuses']): number {
  return Object.values(statuses).reduce((sum, count) => sum + count, 0)
}

const program = fileURLToPath(new URL('traffic/rush.ts', import.meta.url))
