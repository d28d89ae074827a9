/** What a waiting job has to expect: its place in the queue, and when its answer should come by the capacity of the moment. */

import { within } from '@spillway/common/within'
import { type Presence, readTicket, type TicketState } from '../jobs/ticket.js'
import type { RedisConnection } from '../redis/connect.js'
import type { Lane } from '../wire/job.js'
import type { JobRef } from '../wire/reply.js'
import type { LoadReader } from './load.js'
import { jobsAhead } from './load-state.js'
import type { Verdicts } from './verdicts.js'

/** The time limit for reading a ticket at the end of a wait: the answer to the client must not wait for Redis. */
const ANSWER_WITHIN_MS = 500

export interface Expectation {
  /** Jobs that are ahead; undefined where Redis did not say. */
  ahead: number | undefined
  /** Milliseconds until the answer; Infinity when no worker is alive. */
  waitMs: number
  /** The number of its ticket; undefined for a job that was never deferred: its turn has come. */
  number: number | undefined
}

/** What Redis was asked about a job. */
export interface Asked {
  expectation: Expectation
  /** The verdict, if there is one. */
  sealed: string | undefined
}

export interface Expectations {
  /**
   * Of a job that was added to this lane a moment ago, by what is known here: jobs that were added during a reading may count twice, and
   * in the lane of known devices one that comes after it counts too.
   */
  ofNew(lane: Lane, number: number | undefined): Expectation
  /** By what Redis has of it. */
  of(job: JobRef, state: TicketState): Asked
  /** Asks Redis; with a presence the client of its ticket is there from now on. Never rejects. */
  ask(job: JobRef, presence?: Presence): Promise<Asked>
}

export function createExpectations(deps: {
  redis: RedisConnection
  prefix: string
  load: LoadReader
  verdicts: Verdicts
}): Expectations {
  const { redis, prefix, load, verdicts } = deps

  function of(job: JobRef, { verdict, number, place }: TicketState): Asked {
    const sealed = verdict === 'malformed' ? verdicts.broken(job) : verdict
    return { sealed, expectation: { ahead: place.held + place.deferred, waitMs: load.expectedWaitMs(place), number } }
  }

  return {
    ofNew(lane, number) {
      const ahead = Math.max(0, jobsAhead(load.current(), lane) - 1)
      return { ahead, waitMs: load.predictedWaitMs(lane), number }
    },
    of,
    async ask(job, presence) {
      const state = await within(ANSWER_WITHIN_MS, readTicket(redis, prefix, job, presence)).catch(() => undefined)
      if (state !== undefined) return of(job, state)
      const waitMs = load.predictedWaitMs('deferred')
      return { sealed: undefined, expectation: { ahead: undefined, waitMs, number: undefined } }
    },
  }
}
