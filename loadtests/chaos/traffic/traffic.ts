// Visits that begin at a steady rate, however the others go, until they are told to stop.
import { openLoop } from '../../load/open.ts'
import type { Visit, Visitor } from './visit.ts'

export interface Traffic {
  /** Those that have ended, in the order in which they did. */
  visits: Visit[]
  /** No more begin; resolves when the last has ended. */
  stop(): Promise<Visit[]>
}

/** Starts at once. */
export function startTraffic(visitor: Visitor, perSecond: number): Traffic {
  const visits: Visit[] = []
  const stopped = new AbortController()
  let number = 0
  const over = openLoop({
    rateAt: () => perSecond,
    durationMs: Number.POSITIVE_INFINITY,
    signal: stopped.signal,
    send: async (dueMs) => {
      visits.push(await visitor.visit(number++, dueMs))
    },
  })
  return {
    visits,
    async stop() {
      stopped.abort()
      await over
      return visits
    },
  }
}
