// Quantiles of measured times, exact: a storm is bounded, so all of them are kept.

/** The least value that so great a part of all values does not exceed (nearest rank); undefined without values. */
export function quantile(values: readonly number[], part: number): number | undefined {
  const sorted = Float64Array.from(values).sort()
  return sorted[Math.max(Math.ceil(part * sorted.length) - 1, 0)]
}
