// Latencies in an HdrHistogram: their percentiles in constant memory.
import { build } from 'hdr-histogram-js'

/** Stored in microseconds: three digits are kept from 1 µs to ten minutes. */
const UNITS_PER_MS = 1_000
const HIGHEST_MS = 600_000

export class Latency {
  readonly #histogram = build({
    highestTrackableValue: HIGHEST_MS * UNITS_PER_MS,
    numberOfSignificantValueDigits: 3,
  })

  record(ms: number): void {
    this.#histogram.recordValue(Math.round(Math.min(Math.max(ms, 0), HIGHEST_MS) * UNITS_PER_MS))
  }

  atMs(percentile: number): number {
    return this.#histogram.getValueAtPercentile(percentile) / UNITS_PER_MS
  }

  get meanMs(): number {
    return this.#histogram.totalCount === 0 ? 0 : this.#histogram.mean / UNITS_PER_MS
  }

  get percentiles() {
    return {
      count: this.#histogram.totalCount,
      p50Ms: this.atMs(50),
      p95Ms: this.atMs(95),
      p99Ms: this.atMs(99),
      maxMs: this.#histogram.maxValue / UNITS_PER_MS,
    }
  }
}
