// Every gateway and every worker is replaced under load: by another of its version, of the version after it, and of the one before again.
import { unpackOlderVersion } from '@spillway/local/rig'
import { type Kind, roll, rollingSize, type Version } from '../roll.ts'
import type { Scenario } from '../scenario.ts'
import { onOwnRedis } from '../stage/system.ts'

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

function upgrade(name: string, promise: string, order: readonly [Kind, Kind]): Scenario {
  return {
    name,
    promise,
    run: onOwnRedis(rollingSize, async (system) => {
      const { gateway, worker, close } = await unpackOlderVersion()
      const older = { gateway: { entry: gateway }, worker: { entry: worker } }
      try {
        // The way back is the same order again: each kind meets each version of the other.
        const stepsTo = (to: Version) => order.map((kind) => ({ kind, to }))
        return await roll(system, older, [...stepsTo({}), ...stepsTo(older)])
      } finally {
        await close()
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
