// A spike: quiet, then ten times the machine's capacity, then quiet again.
import { setMaxListeners } from 'node:events'
import { createApiClient, redeemUntilAnswered } from '@spillway/infra/rig/api-client'
import { openLoop } from '@spillway/infra/rig/open-loop'
import { coreCount, type Running } from '../contenders/contender.ts'
import { costOf } from '../contenders/hashing.ts'
import { comeBack } from '../load/visit.ts'
import { outcomeOf, percentiles, Tally } from '../measure/tally.ts'
import type { Measured, Row } from '../src/results.ts'
import { ofContenders, picked, type Scenario, type Setting } from './scenario.ts'

const QUIET_BEFORE_S = 2
/** Of the hashes that the cores could compute if they did nothing else. */
const TIMES_CAPACITY = 10
/** Arrivals between spikes, as a share of capacity: they show when things are normal again. */
const TRICKLE = 0.2
/** The line of ten times capacity takes ten times the spike: waited for so many times. */
const LINE_TIMES = 1.5 * TIMES_CAPACITY
const SAMPLE_MS = 1_000

export const spike: Scenario = {
  name: 'spike',
  title: 'Ten seconds at ten times capacity',
  question: 'What happens at ten times capacity, and how long until things are normal again?',
  // It is watched for as long again afterwards, and until the line is empty.
  durationS: 10,
  settings: (setting) => ({ quietS: QUIET_BEFORE_S, perSecond: spikeRate(setting), argon2id: costOf.argon2id }),
  plan: (setting) => ofContenders(setting, { contenders: picked(setting) }, (running) => overrun(running, setting)),
}

function spikeRate(setting: Setting): number {
  return setting.rate ?? Math.round((TIMES_CAPACITY * coreCount(setting.cores) * 1_000) / setting.bareHashMs.argon2id)
}

async function overrun(running: Running, setting: Setting): Promise<Measured> {
  const client = createApiClient(running.url)
  const beforeMs = QUIET_BEFORE_S * 1_000
  const spikeMs = setting.durationS * 1_000
  const durationMs = beforeMs + 2 * spikeMs
  const peak = spikeRate(setting)
  const trickle = (peak / TIMES_CAPACITY) * TRICKLE
  const tally = new Tally()
  const depth: Row[] = []
  const startMs = performance.now()
  const over = AbortSignal.timeout(durationMs + LINE_TIMES * spikeMs)
  setMaxListeners(0, over)
  let lastInMs = 0
  let open = 0
  let caller = 0

  const sampling = setInterval(async () => {
    const second = (performance.now() - startMs) / 1_000
    const queued = await running.depth?.().catch(() => undefined)
    depth.push({ second, open, ...(queued !== undefined && { queued }) })
  }, SAMPLE_MS)
  await openLoop({
    rateAt: (elapsedMs) => (elapsedMs >= beforeMs && elapsedMs < beforeMs + spikeMs ? peak : trickle),
    durationMs,
    send: async (dueMs) => {
      open++
      // A person follows a ticket as a page does, until a verdict or the end of the run.
      const answer = await redeemUntilAnswered(await client.login(setting.accounts.login('argon2id', caller++)), {
        redeem: client.redeem,
        comeBack: (answer) => comeBack(answer, { url: running.url, signal: over }),
        signal: over,
      })
      const outcome = outcomeOf(answer)
      open--
      if (outcome === 'ok') lastInMs = Math.max(lastInMs, performance.now() - startMs - beforeMs)
      // Counted in the second in which the user arrived, whenever the answer came.
      tally.record(outcome, performance.now() - dueMs, Math.floor((dueMs - startMs) / 1_000))
    },
  })
  clearInterval(sampling)
  client.close()

  return {
    figures: {
      answeredPercent: tally.share('ok', 'ticket', 'busy'),
      failedPercent: tally.share('timeout', 'error'),
      inPercent: tally.share('ok'),
      lastInMs,
      perSecond: (tally.counts.ok * 1_000) / (performance.now() - startMs),
      ...percentiles(tally.waitedMs),
    },
    series: {
      bySecond: tally.bySecond.map((counts, second) => ({ second, ...withoutZeros(counts) })),
      depth,
    },
  }
}

/** They are most of the figures of a spike, and mean as much when they are missing. */
function withoutZeros(counts: Record<string, number>): Row {
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0))
}
