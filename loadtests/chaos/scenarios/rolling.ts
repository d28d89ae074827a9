// Every gateway and every worker is replaced under load, one after the other, each by SIGTERM.
import { setTimeout as sleep } from 'node:timers/promises'
import type { MemberOptions } from '@spillway/infra/start/member'
import type { Findings } from '../findings.ts'
import { type Scenario, underFault } from '../scenario.ts'
import { startBalancer } from '../stage/balancer.ts'
import { onOwnRedis, type System } from '../stage/stage.ts'

const PAUSE_MS = 500
const PER_SECOND = 20
const REPLACED_OF_EACH = 2
/** One of so many wants a ticket at once, which another gateway redeems. */
const EVERY_NTH_ASYNC = 3
/** The drain is longer than a balancer takes to hear that a gateway is no longer ready. */
export const rollingSize = {
  credential: 'wait-100',
  gateways: 0,
  workers: 0,
  gatewayEnv: { DRAIN_MS: '2000' },
} as const

export type Kind = 'gateway' | 'worker'
/** How the members of each kind start [from the build of this checkout]. */
export type Version = Partial<Record<Kind, MemberOptions>>

/** Replaces all members of a kind by members of one version. */
export interface Step {
  kind: Kind
  to: Version
  /** How long nothing is replaced before it [0]. */
  waitMs?: number
}

/** Runs one version, and replaces it by others. No request may fail. */
export async function roll(system: System, first: Version, steps: readonly Step[]): Promise<Findings> {
  for (let n = 0; n < REPLACED_OF_EACH; n++) {
    await system.worker(first.worker)
    await system.gateway(first.gateway)
  }
  await system.knowsWorkers()
  const balancer = await startBalancer(system)
  try {
    await balancer.knows(...system.gateways)
    const findings = await underFault(system, {
      visitor: {
        urls: [balancer.url],
        headers: (number) => ({
          // A connection for each request, so that the balancer chooses for each.
          connection: 'close',
          ...(number % EVERY_NTH_ASYNC === 0 && { prefer: 'respond-async' }),
        }),
      },
      perSecond: PER_SECOND,
      async fault() {
        for (const { kind, to, waitMs = 0 } of steps) {
          await sleep(waitMs)
          for (const member of system[`${kind}s`].filter(({ exit }) => exit === undefined)) {
            await member.stop()
            if (kind === 'worker') await system.worker(to.worker)
            else await balancer.knows(await system.gateway(to.gateway))
            await sleep(PAUSE_MS)
          }
        }
      },
      afterMs: 2_000,
    })
    findings.expectAllSucceeded()
    const codes = [...system.gateways, ...system.workers]
      .filter(({ wasEnded }) => wasEnded)
      .map(({ exit }) => exit?.code)
    findings.expect(codes.length === REPLACED_OF_EACH * steps.length, `${codes.length} processes were replaced`)
    findings.expect(
      codes.every((code) => code === 0),
      `exit codes were ${codes.join(', ')}`,
    )
    return findings
  } finally {
    await balancer.close()
  }
}

const rollingRestart: Scenario = {
  name: 'rolling-restart',
  promise: 'Every gateway and worker is replaced under load, by SIGTERM: not one request fails.',
  run: onOwnRedis(rollingSize, (system) => {
    return roll(system, {}, [
      { kind: 'worker', to: {} },
      { kind: 'gateway', to: {} },
    ])
  }),
}

export const rollingScenarios: readonly Scenario[] = [rollingRestart]
