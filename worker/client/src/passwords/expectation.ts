/** What a waiting job has to expect: its place in the queue, and when its answer should come by the capacity of the moment. */
import type { Lane } from '../protocol/job.js'
import { findPlace } from '../queue/place.js'
import type { RedisConnection } from '../redis/connect.js'
import { within } from '../within.js'
import type { LoadReader } from './load.js'
import { jobsAhead } from './load-state.js'

/** The time limit for reading a job's place: the answer to the client must not wait for Redis. */
const ANSWER_WITHIN_MS = 250

export interface Expectation {
  /** Jobs that are ahead; undefined where Redis did not say. */
  ahead: number | undefined
  /** Milliseconds until the answer; Infinity when no worker is alive. */
  waitMs: number
}

export interface Expectations {
  /**
   * Of a job that was added to this lane a moment ago, by what is known here: jobs that were added during a reading may count twice, and
   * in the lane of known devices one that comes after it counts too.
   */
  ofNew(lane: Lane): Expectation
  /** By its place in Redis. Never rejects. */
  of(jobId: string): Promise<Expectation>
}

export function createExpectations(deps: { redis: RedisConnection; prefix: string; load: LoadReader }): Expectations {
  const { redis, prefix, load } = deps
  return {
    ofNew(lane) {
      const ahead = Math.max(0, jobsAhead(load.current(), lane) - 1)
      return { ahead, waitMs: load.predictedWaitMs(lane) }
    },
    async of(jobId) {
      const place = await within(ANSWER_WITHIN_MS, findPlace(redis, prefix, jobId)).catch(() => undefined)
      if (place === undefined) return { ahead: undefined, waitMs: load.predictedWaitMs('deferred') }
      return { ahead: place.held + place.deferred, waitMs: load.expectedWaitMs(place) }
    },
  }
}
