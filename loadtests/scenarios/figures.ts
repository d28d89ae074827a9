// The figures that several scenarios take from what they observed.
import type { ClosedLoopResult } from '../load/closed.ts'
import { type Observation, timeOf } from '../measure/observe.ts'
import type { Measured } from '../src/results.ts'

/** What a closed loop of requests did to its callers, to the API process and to bystanders. */
export function loginFigures({ result, seconds, parts, bystanders }: Observation<ClosedLoopResult>): Measured {
  const { tally } = result
  const { p50Ms, p95Ms, p99Ms } = tally.latency.percentiles
  const measuredParts = parts.length > 0
  return {
    figures: {
      perSecond: tally.counts.ok / result.seconds,
      p50Ms,
      p95Ms,
      p99Ms,
      failedPercent: tally.share('timeout', 'error'),
      neighbourP50Ms: bystanders.neighbour.percentiles.p50Ms,
      neighbourP99Ms: bystanders.neighbour.percentiles.p99Ms,
      healthzP99Ms: bystanders.healthz.percentiles.p99Ms,
      ...(tally.counts.ticket + tally.counts.busy > 0 && { deferredPercent: tally.share('ticket', 'busy') }),
      ...(measuredParts && {
        apiPercent: timeOf(parts, 'api') / seconds / 10,
        processorMsPerAnswer: timeOf(parts) / Math.max(tally.counts.ok, 1),
      }),
    },
    histograms: {
      answer: tally.latency.encode(),
      neighbour: bystanders.neighbour.encode(),
      healthz: bystanders.healthz.encode(),
    },
    series: {
      bySecond: tally.bySecond.map((counts, second) => ({ second, ...counts })),
      processor: parts.map(({ role, totalMs, eventLoopMs }) => ({ role, totalMs, eventLoopMs })),
    },
  }
}
