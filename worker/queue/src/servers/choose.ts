/** The order in which the Redis servers of a list are tried for a job. */

export interface Candidate {
  isUsable: boolean
  /** Predicted, in milliseconds; Infinity where no worker is alive. */
  waitMs: number
  /** Jobs that this client is adding: more where the Redis server itself is slow. */
  adding: number
}

/**
 * The better of two random ones (the power of two choices: Mitzenmacher 2001), so gateways that
 * read the same depth do not all choose the same server; then the others, the best first. A server
 * is better by a shorter wait, and with equal waits by fewer jobs being added. Those that are not
 * usable come last: they may be back.
 */
export function orderOf<C extends Candidate>(candidates: readonly C[], random: () => number = Math.random): C[] {
  const ranked = shuffled(candidates, random).sort(compare)
  const served = ranked.filter(({ isUsable, waitMs }) => isUsable && Number.isFinite(waitMs))
  const [one, two] = shuffled(served, random)
  if (one === undefined || two === undefined) return ranked
  const chosen = compare(two, one) < 0 ? two : one
  return [chosen, ...ranked.filter((candidate) => candidate !== chosen)]
}

function compare(a: Candidate, b: Candidate): number {
  if (a.isUsable !== b.isUsable) return a.isUsable ? -1 : 1
  return a.waitMs === b.waitMs ? a.adding - b.adding : a.waitMs - b.waitMs
}

/** Fisher and Yates. */
function shuffled<T>(all: readonly T[], random: () => number): T[] {
  const left = [...all]
  return all.flatMap(() => left.splice(Math.floor(random() * left.length), 1))
}
