// The latencies of a measurement's repeats.
import { Latency } from '../measure/latency.ts'
import type { Summary } from '../src/summary.ts'

/** All repeats of a histogram in one; undefined when none of them holds anything. */
export function latencyOf(summary: Summary, histogram: string): Latency | undefined {
  const latency = new Latency()
  for (const { histograms } of summary.runs) {
    const encoded = histograms[histogram]
    if (encoded !== undefined) latency.add(Latency.decode(encoded))
  }
  return latency.percentiles.count === 0 ? undefined : latency
}
