/** The requests of about the last minute, from a sample of all counts each second. */
import { combineOutcomes, noOutcomes, type RequestOutcomes } from '../../http/request-outcomes.js'

/** The length of the recent period, in samples of a second. */
const SAMPLES = 60

export interface Lately {
  /** Takes the counts of now; to be called once a second. */
  sample(total: RequestOutcomes): void
  /** The requests since the oldest sample, given the counts of now, and its age in milliseconds, at least 1. */
  since(total: RequestOutcomes): { lately: RequestOutcomes; latelyMs: number }
}

export function createLately(now: () => number = () => performance.now()): Lately {
  const samples = [{ atMs: now(), total: noOutcomes }]
  return {
    sample(total) {
      samples.push({ atMs: now(), total })
      if (samples.length > SAMPLES) samples.shift()
    },
    since(total) {
      const before = samples[0] ?? { atMs: 0, total: noOutcomes }
      return {
        lately: combineOutcomes(total, before.total, (count, then) => count - then),
        latelyMs: Math.max(1, Math.round(now() - before.atMs)),
      }
    },
  }
}
