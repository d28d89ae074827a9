// The two-sample Kolmogorov-Smirnov test: whether two samples can be of one distribution. It sees a shift as well as a tail or a second
// peak, and assumes nothing about their shape.

export interface Compared {
  /** The greatest distance between the two empirical distribution functions, 0 to 1. */
  distance: number
  /** The probability of such a distance, or a greater one, if both samples are of one distribution; for samples of some dozens or more. */
  p: number
}

export function kolmogorovSmirnov(one: readonly number[], other: readonly number[]): Compared {
  // Each sample adds its share to its own side: where all values up to one are counted, the sum is the distance there.
  const steps = [
    ...one.map((value) => ({ value, share: 1 / one.length })),
    ...other.map((value) => ({ value, share: -1 / other.length })),
  ].sort((a, b) => a.value - b.value)
  let distance = 0
  let sum = 0
  for (const [place, { value, share }] of steps.entries()) {
    sum += share
    const isTied = steps[place + 1]?.value === value
    if (!isTied) distance = Math.max(distance, Math.abs(sum))
  }
  const scale = Math.sqrt((one.length * other.length) / (one.length + other.length))
  return { distance, p: kolmogorovTail(distance * scale) }
}

/** Below this the tail is 1 but for 10^-5, and its series converges slowly. */
const LEAST = 0.3
const TERMS = 20

/** The probability that a value of Kolmogorov's distribution is greater: 2 Σ (-1)^(k-1) e^(-2k²x²). */
export function kolmogorovTail(x: number): number {
  if (x < LEAST) return 1
  let sum = 0
  for (let k = 1; k <= TERMS; k++) sum += (k % 2 === 1 ? 2 : -2) * Math.exp(-2 * (k * x) ** 2)
  return sum
}
