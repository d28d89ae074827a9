/** Exact, by nearest rank; undefined without values. */
export function quantile(values: readonly number[], part: number): number | undefined {
  const sorted = Float64Array.from(values).sort()
  return sorted[Math.max(Math.ceil(part * sorted.length) - 1, 0)]
}
