// Latencies in an HdrHistogram, so that a run keeps its whole distribution and not only the percentiles asked for today.
import { build, decodeFromCompressedBase64, encodeIntoCompressedBase64, type Histogram } from 'hdr-histogram-js'

/** Stored in microseconds: three digits are kept from 1 µs to ten minutes. */
const UNITS_PER_MS = 1_000
const HIGHEST_MS = 600_000

export class Latency {
  readonly #histogram: Histogram

  constructor(
    histogram: Histogram = build({
      highestTrackableValue: HIGHEST_MS * UNITS_PER_MS,
      numberOfSignificantValueDigits: 3,
    }),
  ) {
    this.#histogram = histogram
  }

  /** The inverse of {@link encode}. */
  static decode(encoded: string): Latency {
    return new Latency(decodeFromCompressedBase64(encoded))
  }

  record(ms: number): void {
    this.#histogram.recordValue(Math.round(Math.min(Math.max(ms, 0), HIGHEST_MS) * UNITS_PER_MS))
  }

  /** Adds everything that another one has recorded. */
  add(other: Latency): void {
    this.#histogram.add(other.#histogram)
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

  /** HdrHistogram's own compressed form, in base64. */
  encode(): string {
    return encodeIntoCompressedBase64(this.#histogram)
  }
}
