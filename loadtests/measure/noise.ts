// The middle of repeated measurements and how far apart they lie.

export type Middle = NonNullable<ReturnType<typeof middle>>

/** @returns undefined when there is no value */
export function middle(values: readonly number[]) {
  const sorted = values.toSorted((a, b) => a - b)
  const low = sorted[Math.floor((sorted.length - 1) / 2)]
  const high = sorted[Math.ceil((sorted.length - 1) / 2)]
  const least = sorted[0]
  const greatest = sorted.at(-1)
  if (low === undefined || high === undefined || least === undefined || greatest === undefined) return undefined
  return {
    median: (low + high) / 2,
    /** Half the distance between the least and the greatest; undefined when there was only one. */
    plusMinus: sorted.length > 1 ? (greatest - least) / 2 : undefined,
    runs: sorted.length,
  }
}
