// The figures that several scenarios take from what they observed.
import type { ClosedLoopResult } from '../load/closed.ts'
import { type observe, type PartTime, timeOf } from '../measure/observe.ts'
import type { Latency } from '../measure/tally.ts'
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
      ...bystanderFigures('neighbour', bystanders.neighbour),
      ...bystanderFigures('healthz', bystanders.healthz),
      generatorPercent,
      ...(tally.counts.ticket + tally.counts.busy > 0 && { deferredPercent: tally.share('ticket', 'busy') }),
      ...(parts.length > 0 && { apiPercent: timeOf(parts, 'api') / seconds / 10 }),
      ...footprint(parts),
      ...(parts.length > 0 && tally.counts.ok > 0 && { processorMsPerAnswer: timeOf(parts) / tally.counts.ok }),
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

function bystanderFigures(name: 'neighbour' | 'healthz', { percentiles }: Latency): Record<string, number> {
  const { p50Ms, p95Ms, p99Ms } = percentiles
  return { [`${name}P50Ms`]: p50Ms, [`${name}P95Ms`]: p95Ms, [`${name}P99Ms`]: p99Ms }
}

/** The percentiles people ask for; empty when nothing was answered, since 0 ms would be praise. */
export function latencyFigures(latency: Latency): Record<string, number> {
  const { count, p50Ms, p95Ms, p99Ms } = latency.percentiles
  return count === 0 ? {} : { p50Ms, p95Ms, p99Ms }
}
