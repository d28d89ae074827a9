// A spike: quiet, then ten times the machine's capacity, then quiet again.
import { createApiClient, redeemUntilAnswered } from '@spillway/infra/harness/api-client'
import type { Measured, Row } from '@spillway/loadtests/results'
import { coreCount, type Running } from '../contenders/contender.ts'
import { openLoop } from '../load/open-loop.ts'
import { outcomeOf, percentiles, Tally } from '../measure/tally.ts'
import { ends } from './crowds.ts'
import { ofContenders, type Scenario, type Setting } from './scenario.ts'

const SPIKE_S = 10
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
  plan: (setting) => ofContenders(setting, { few: ['in-process', 'spillway'] }, (running) => overrun(running, setting)),
}

async function overrun(running: Running, { accounts, durationS = SPIKE_S, bareHashMs }: Setting): Promise<Measured> {
  const client = createApiClient(running.url)
  const beforeMs = QUIET_BEFORE_S * 1_000
  const spikeMs = durationS * 1_000
  // It is watched for as long again afterwards, and until the line is empty.
  const durationMs = beforeMs + 2 * spikeMs
  const capacity = (coreCount * 1_000) / bareHashMs.argon2id
  const tally = new Tally()
  const series: Row[] = []
  const startMs = performance.now()
  const endMs = startMs + durationMs + LINE_TIMES * spikeMs
  let [lastInMs, open, caller] = [0, 0, 0]

  const sampling = setInterval(() => series.push({ second: series.length + 1, open }), SAMPLE_MS)
  await openLoop({
    rateAt: (elapsedMs) =>
      capacity * (elapsedMs >= beforeMs && elapsedMs < beforeMs + spikeMs ? TIMES_CAPACITY : TRICKLE),
    durationMs,
    send: async (dueMs) => {
      open++
      // A ticket is redeemed, as Retry-After says, until there is a result.
      const answer = await redeemUntilAnswered(await client.login(accounts.login('argon2id', caller++)), {
        redeem: client.redeem,
        endMs,
      })
      open--
      const outcome = outcomeOf(answer)
      if (outcome === 'ok') lastInMs = Math.max(lastInMs, performance.now() - startMs - beforeMs)
      tally.record(outcome, performance.now() - dueMs)
    },
  })
  clearInterval(sampling)
  client.close()
  const failedPercent = tally.share('timeout', 'error')
  return { figures: { ...ends(tally), ...percentiles(tally.waitedMs), lastInMs, failedPercent }, series }
}
