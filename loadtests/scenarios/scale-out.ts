// More workers, more gateways. The hash waits instead of computing, as if each worker had a core of its own, so that a
// small machine can show where handing out jobs itself becomes the limit.
import type { SpillwayOptions, SpillwayRunning } from '../contenders/spillway/start.ts'
import { withCallers } from '../load/closed.ts'
import { loginCaller } from '../load/requests.ts'
import { processorTimeOf, timeOf } from '../measure/observe.ts'
import type { Measured } from '../src/results.ts'
import { hasSpillway, type Measurement, type Scenario, type Setting } from './scenario.ts'
import { withSpillway } from './warm.ts'

/** Gateways have as many workers, so that each has the same to do; one gateway's is the first of the workers. */
const SIZES = {
  short: { workers: [1, 32], gateways: [8] },
  all: { workers: [1, 2, 4, 8, 16, 32], gateways: [2, 4, 8, 16] },
}
/** The 80 ms of the field's bcrypt compare, as if on a core of its own. */
const WAIT_MS = 80
const HASH = `wait-${WAIT_MS}` as const
/** Callers for each slot: enough that no slot waits for a caller. */
const CALLERS_A_SLOT = 3
const DURATION_S = 4

export const scaleOut: Scenario = {
  name: 'scale-out',
  title: 'More workers, more gateways',
  question:
    'How far do logins grow with the workers, and does a login cost a gateway more when there are more gateways?',
  settings: (setting) => ({ waitMs: WAIT_MS, slotsAWorker: 1, seconds: setting.durationS ?? DURATION_S }),
  plan: (setting) => {
    if (!hasSpillway(setting)) return []
    const sizes = SIZES[setting.short ? 'short' : 'all']
    return [
      ...sizes.workers.map((workers) => measurement(setting, { gateways: 1, workers }, `${workers} workers`)),
      ...sizes.gateways.map((gateways) =>
        measurement(setting, { gateways, workers: gateways }, `${gateways} gateways`),
      ),
    ]
  },
}

type Size = Pick<SpillwayOptions, 'gateways' | 'workers'>

function measurement(setting: Setting, size: Size, variant: string): Measurement {
  const durationS = setting.durationS ?? DURATION_S
  return {
    contender: 'spillway',
    variant,
    placement: 'together',
    estimatedS: durationS + 8 + (size.workers + size.gateways) * 0.4,
    // Nothing is pinned: so many processes need all the cores there are.
    measure: () =>
      withSpillway({ ...size, cores: undefined, concurrency: 1 }, setting, HASH, (running) =>
        dispatch(running, size, setting, durationS),
      ),
  }
}

async function dispatch(running: SpillwayRunning, size: Size, setting: Setting, durationS: number): Promise<Measured> {
  const connections = Math.max(size.workers * CALLERS_A_SLOT, size.gateways)
  const caller = loginCaller(setting.accounts, HASH)
  const { result, parts } = await withCallers({ urls: running.urls, connections, caller }, (callers) =>
    processorTimeOf(running, setting.servers, () => callers.countFor(durationS)),
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
    histograms: { answer: tally.latency.encode() },
    series: { size: [{ ...size, perSecond, idealPerSecond, gatewayMsPerLogin: timeOf(parts, 'api') / logins }] },
  }
}
