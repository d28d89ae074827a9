// Every gateway and every worker is replaced under load, one after the other, each by SIGTERM: by another of its version, of the version
// after it, and of the one before again.
import { setTimeout as sleep } from 'node:timers/promises'
import { type MemberOptions, unpackOlderVersion } from '@spillway/local/testing'
import type { Findings, Scenario } from '../scenario.ts'
import { startBalancer } from '../stage/balancer.ts'
import { type OwnSystem, onOwnRedis } from '../stage/system.ts'
import { underFault } from '../under-fault.ts'

const PAUSE_MS = 500
const PER_SECOND = 20
const REPLACED_OF_EACH = 2
/** One of so many wants a ticket at once, which another gateway than the one that gave it redeems. */
const EVERY_NTH_ASYNC = 3
/** The drain is longer than a balancer takes to hear that a gateway is no longer ready. */
const size = { credential: 'wait-100', gateways: 0, workers: 0, gatewayEnv: { DRAIN_MS: '2000' } } as const

type Kind = 'gateway' | 'worker'
/** The entry of each kind's program [of today]. */
type Version = Partial<Record<Kind, string>>

/** Runs one version, and replaces it by others, one kind after the other. */
async function roll(system: OwnSystem, first: Version, steps: readonly [Kind, Version][]): Promise<Findings> {
  const programOf = (kind: Kind, { [kind]: entry }: Version): MemberOptions => (entry === undefined ? {} : { entry })
  for (let n = 0; n < REPLACED_OF_EACH; n++) {
    await system.worker(programOf('worker', first))
    await system.gateway(programOf('gateway', first))
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
        for (const [kind, version] of steps) {
          for (const member of system[`${kind}s`].filter(({ exit }) => exit === undefined)) {
            await member.stop()
            const program = programOf(kind, version)
            if (kind === 'worker') await system.worker(program)
            else await balancer.knows(await system.gateway(program))
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
  run: onOwnRedis(size, (system) => {
    return roll(system, {}, [
      ['worker', {}],
      ['gateway', {}],
    ])
  }),
}

function upgrade(name: string, promise: string, order: readonly [Kind, Kind]): Scenario {
  return {
    name,
    promise,
    run: onOwnRedis(size, async (system) => {
      const older = await unpackOlderVersion()
      try {
        // The way back is the same order again: each kind meets each version of the other.
        const [first, second] = order
        return await roll(system, older, [
          [first, {}],
          [second, {}],
          [first, older],
          [second, older],
        ])
      } finally {
        await older.close()
      }
    }),
  }
}

export const rollingScenarios: readonly Scenario[] = [
  rollingRestart,
  upgrade(
    'upgrade-gateways-first',
    'An earlier version is replaced by this one under load, gateways first, and this one by that again: not one request fails.',
    ['gateway', 'worker'],
  ),
  upgrade(
    'upgrade-workers-first',
    'An earlier version is replaced by this one under load, workers first, and this one by that again: not one request fails.',
    ['worker', 'gateway'],
  ),
]
