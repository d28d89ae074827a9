// The figures that several scenarios take from what they observed.
import type { ClosedLoopResult } from '../load/closed.ts'
import type { Latency } from '../measure/latency.ts'
import { type observe, type PartTime, timeOf } from '../measure/observe.ts'
import type { Measured } from '../src/results.ts'

/** The effects of a closed loop of requests on its callers, on the API process and on bystanders. */
export function loginFigures(observed: Awaited<ReturnType<typeof observe<ClosedLoopResult>>>): Measured {
  const { result, seconds, parts, generatorPercent, bystanders } = observed
  const { tally } = result
  return {
    figures: {
      perSecond: tally.counts.ok / result.seconds,
      ...latencyFigures(tally.latency),
      failedPercent: tally.share('timeout', 'error'),
      neighbourP50Ms: bystanders.neighbour.percentiles.p50Ms,
      neighbourP99Ms: bystanders.neighbour.percentiles.p99Ms,
      generatorPercent,
      healthzP99Ms: bystanders.healthz.percentiles.p99Ms,
      ...(tally.counts.ticket + tally.counts.busy > 0 && { deferredPercent: tally.share('ticket', 'busy') }),
      ...(parts.length > 0 && { apiPercent: timeOf(parts, 'api') / seconds / 10 }),
      ...footprint(parts),
      ...(parts.length > 0 && tally.counts.ok > 0 && { processorMsPerAnswer: timeOf(parts) / tally.counts.ok }),
    },
    histograms: {
      answer: tally.latency.encode(),
      neighbour: bystanders.neighbour.encode(),
      healthz: bystanders.healthz.encode(),
    },
    series: {},
  }
}

/** The memory of the largest process of each role, and the start of the slowest. */
function footprint(parts: readonly PartTime[]): Record<string, number> {
  return Object.fromEntries(
    (['api', 'worker'] as const).flatMap((role) => {
      const ofRole = parts.filter((part) => part.role === role)
      const memory = ofRole.flatMap(({ peakMb = [] }) => peakMb)
      const ready = ofRole.flatMap(({ readyMs = [] }) => readyMs)
      return [
        ...(memory.length > 0 ? [[`${role}Mb`, Math.max(...memory)] as const] : []),
        ...(ready.length > 0 ? [[`${role}ReadyMs`, Math.max(...ready)] as const] : []),
      ]
    }),
  )
}

/** The percentiles people ask for; none when nothing was answered, since 0 ms would be praise. */
export function latencyFigures(latency: Latency): Record<string, number> {
  const { count, p50Ms, p95Ms, p99Ms } = latency.percentiles
  return count === 0 ? {} : { p50Ms, p95Ms, p99Ms }
}
