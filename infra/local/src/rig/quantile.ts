// Quantiles of measured times, exact: a storm is bounded, so all of them are kept.

/** By nearest rank. */
export function quantile(values: readonly number[], part: number): number | undefined {
  const sorted = Float64Array.from(values).sort()
  return sorted[Math.max(Math.ceil(part * sorted.length) - 1, 0)]
}

export interface ToldEta {
  atMs: number
  etaMs: number
  answeredAtMs: number
}

export interface EtaErrors {
  count: number
  /** The 90th percentile, as a share of the time that the answer took; Infinity without any ETA. */
  p90: number
}

/** Shorter ones are over before they could be told again. */
const LEAST_MS = 1_000

/** When workers join, or a spike ends, and until gateways know it; times of performance.now(). */
interface Change {
  beganAtMs: number
  endedAtMs: number
}

/**
 * The errors of ETAs before the first change, and after it. ETAs that a change made wrong are left
 * out: those told before its end and answered after its beginning.
 */
export function etaErrors(
  told: readonly ToldEta[],
  [first, ...later]: readonly [Change, ...Change[]],
): { before: EtaErrors; after: EtaErrors } {
  const isWithin = ({ atMs, answeredAtMs }: ToldEta, { beganAtMs, endedAtMs }: Change) =>
    atMs < endedAtMs && answeredAtMs > beganAtMs
  return {
    before: errorsOf(told.filter(({ answeredAtMs }) => answeredAtMs < first.beganAtMs)),
    after: errorsOf(told.filter((eta) => eta.atMs > first.endedAtMs && !later.some((change) => isWithin(eta, change)))),
  }
}

function errorsOf(told: readonly ToldEta[]): EtaErrors {
  const errors = told
    .map(({ atMs, etaMs, answeredAtMs }) => ({ etaMs, tookMs: answeredAtMs - atMs }))
    .filter(({ tookMs }) => tookMs >= LEAST_MS)
    .map(({ etaMs, tookMs }) => Math.abs(etaMs - tookMs) / tookMs)
  return { count: errors.length, p90: quantile(errors, 0.9) ?? Number.POSITIVE_INFINITY }
}
