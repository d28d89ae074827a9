/** Checks the numbers of options. */

/** Hashes at a time. */
export const CONCURRENCY_MAX = 1_024

/** @throws RangeError for any other number than a whole one between these, inclusively */
export function wholeNumber(name: string, value: number, min: number, max: number): number {
  if (Number.isInteger(value) && value >= min && value <= max) return value
  throw new RangeError(`${name} is a whole number from ${min} to ${max}`)
}
