// More workers, more gateways. The hash waits instead of computing, as if each worker had a core of its own, so that a
// small machine can show where handing out jobs itself becomes the limit.
import type { SpillwayOptions, SpillwayRunning } from '../contenders/spillway.ts'
import { loginCaller, withCallers } from '../load/closed.ts'
import { processorTimeOf, timeOf } from '../measure/observe.ts'
import type { Measured } from '../src/results.ts'
import { ofSpillway } from './measurements.ts'
import type { Measurement, Scenario, Setting } from './scenario.ts'

/**
 * Gateways have as many workers, so that each has the same to do; one gateway's is the first of the workers. More of them
 * make the machine busier and its caches colder, whatever they have to do with each other. So as many are measured
 * alongside that share no queue: what these cost less is what a gateway costs the others.
 */
const SIZES = {
  short: { workers: [1, 32], gateways: [4] },
  all: { workers: [1, 2, 4, 8, 16, 32], gateways: [2, 4, 8, 16] },
}
/** The 80 ms of the field's bcrypt compare, as if on a core of its own. */
const WAIT_MS = 80
const HASH = `wait-${WAIT_MS}` as const
/** Callers for each slot: enough that no slot waits for a caller. */
const CALLERS_A_SLOT = 3
/** Of the usual warm-up, for each process: one that has seen fewer logins than another costs more for each. */
const WARM_UP_SHARE = { gateway: 1 / 4, worker: 1 / 16 }

export const scaleOut: Scenario = {
  name: 'scale-out',
  title: 'More workers, more gateways',
  question:
    'How far do logins grow with the workers, and does a login cost a gateway more when there are more gateways?',
  durationS: 4,
  settings: () => ({ waitMs: WAIT_MS, slotsAWorker: 1 }),
  plan: (setting) => {
    const sizes = SIZES[setting.short ? 'short' : 'all']
    return [
      ...sizes.workers.flatMap((workers) =>
        measurement(setting, { systems: 1, gateways: 1, workers }, `${workers} workers`),
      ),
      ...sizes.gateways.flatMap((count) => [
        ...measurement(setting, { systems: 1, gateways: count, workers: count }, `${count} gateways`),
        ...measurement(setting, { systems: count, gateways: count, workers: count }, `${count} gateways, each alone`),
      ]),
    ]
  },
}

/** Gateways and workers of all systems together. */
type Size = Pick<SpillwayOptions, 'gateways' | 'workers'> & { systems: number }

function measurement(setting: Setting, size: Size, variant: string): Measurement[] {
  const { gateways, workers, systems } = size
  const shares = Math.max(gateways * WARM_UP_SHARE.gateway, workers * WARM_UP_SHARE.worker)
  const { logins, atMostMs } = setting.warmUp
  const warmUp = { logins: Math.ceil(logins * shares), atMostMs: atMostMs * shares }
  // Nothing is pinned: so many processes need all the cores there are.
  const each = { cores: undefined, gateways: gateways / systems, workers: workers / systems, concurrency: 1 }
  return ofSpillway(
    { ...setting, warmUp },
    { systems, size: each, credential: HASH, variant, placement: 'together' },
    (running) => dispatch(running, size, setting),
  )
}

async function dispatch(running: SpillwayRunning, size: Size, setting: Setting): Promise<Measured> {
  const callers = Math.max(size.workers * CALLERS_A_SLOT, size.gateways)
  const caller = loginCaller(setting.accounts, HASH)
  const { result, parts } = await withCallers({ urls: running.urls, callers, caller }, (countFor) =>
    processorTimeOf(running, setting.servers, () => countFor(setting.durationS)),
  )
  const { tally, seconds } = result
  const perSecond = tally.counts.ok / seconds
  const idealPerSecond = (size.workers * 1_000) / WAIT_MS
  const logins = Math.max(tally.counts.ok, 1)
  return {
    figures: {
      perSecond,
      idealPercent: (100 * perSecond) / idealPerSecond,
      failedPercent: tally.share('timeout', 'error'),
      ...(parts.length > 0 && {
        gatewayMsPerLogin: timeOf(parts, 'api') / logins,
        redisMsPerLogin: timeOf(parts, 'redis') / logins,
      }),
    },
    series: { size: [{ ...size, perSecond, idealPerSecond, gatewayMsPerLogin: timeOf(parts, 'api') / logins }] },
  }
}
