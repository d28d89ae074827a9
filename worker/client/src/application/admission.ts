/** Admission of an application's calls by the predicted wait: a call that cannot be answered in time is refused before it costs anything. */

import { LINE_SHARE } from '@spillway/queue/jobs/lanes'
import { createOutstandingLimit, createRetryAfter } from '@spillway/queue/wait/outstanding-limit'
import { createRefusalPace, REFUSED_AT_ONCE_MS } from '@spillway/queue/wait/refusal-pace'
import type { Load } from '@spillway/queue/wire/capacity'
import type { Backend } from './backend.js'
import { PasswordsError } from './passwords-error.js'

/** How long calls are let in without a worker: a restart of a worker should fail no call. */
const NO_WORKER_GRACE_MS = 2_000
/** When to come back where nothing hashes: workers publish their capacity twice a second. */
const NO_WORKER_RETRY_MS = 1_000

export interface Admission {
  /** The error of a call that cannot be answered within its wait: `busy` or `no_worker`. Undefined lets it in. */
  refusalOf(waitMs: number): PasswordsError | undefined
  /** Holds a refusal until it is due: a client that calls again at once gains nothing. */
  paced(): Promise<void>
  /** The same of a call with a ticket, which waits behind the others. */
  ticketRefusalOf(lifeMs: number): PasswordsError | undefined
  /** The error of a call that a worker dropped, because it would have been answered too late. */
  expired(): PasswordsError
  /** The error of a call that was let in and that nobody took in time: `no_worker` where that is why, else `expired`. */
  late(): PasswordsError
}

export function createCallAdmission(
  backend: Pick<Backend, 'load'>,
  maxOutstanding: number,
  now: () => number = () => performance.now(),
): Admission {
  const limit = createOutstandingLimit(maxOutstanding, now)
  const retryAfterS = createRetryAfter(now)
  const perSecond = () => backend.load().jobsPerSecond
  const whenDue = createRefusalPace({ perSecond, leastDelayMs: 0, burstMs: REFUSED_AT_ONCE_MS })
  let noWorkersSince: number | undefined

  function noWorker(): PasswordsError {
    return new PasswordsError('no_worker', 'no worker is alive', { retryAfterMs: NO_WORKER_RETRY_MS })
  }

  function refusalOf(before: (load: Load) => Load, waitMs: number): PasswordsError | undefined {
    const load = backend.load()
    const lacksWorkers = load.known && load.slots === 0
    noWorkersSince = lacksWorkers ? (noWorkersSince ?? now()) : undefined
    if (noWorkersSince !== undefined && now() - noWorkersSince > NO_WORKER_GRACE_MS) return noWorker()
    const refused = limit(before(load), waitMs)
    if (refused === undefined) return undefined
    return new PasswordsError('busy', 'the answer would come too late', { retryAfterMs: refused.retryAfterS * 1_000 })
  }

  function expired(): PasswordsError {
    const { jobsPerSecond, waiting, active } = backend.load()
    const retryAfterMs = retryAfterS(jobsPerSecond, waiting + active) * 1_000
    return new PasswordsError('expired', 'there was no answer before the deadline', { retryAfterMs })
  }

  return {
    refusalOf: (waitMs) => refusalOf(beforeACall, waitMs),
    ticketRefusalOf: (lifeMs) => refusalOf((load) => load, lifeMs * LINE_SHARE),
    paced: () => new Promise(whenDue),
    expired,
    late() {
      const { known, slots } = backend.load()
      return known && slots === 0 ? noWorker() : expired()
    },
  }
}

/**
 * What runs before a call of an application, by what the next seconds will do. It overtakes jobs with tickets of a gateway, so these do not
 * delay it: a line of thousands must not refuse a call that would be answered at once.
 */
function beforeACall(load: Load): Load {
  return { ...load, deferred: 0, linePerSecond: load.jobsPerSecond || load.linePerSecond }
}
