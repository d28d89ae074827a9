/** Admission of an application's calls by the predicted wait: a call that cannot be answered in time is refused before it costs anything. */
import { createOutstandingLimit } from '../passwords/outstanding-limit.js'
import type { Backend } from './backend.js'
import { PasswordsError } from './passwords-error.js'

/** How long calls are let in without a worker: one that merely restarts should fail none of them. */
const NO_WORKER_GRACE_MS = 2_000
/** When to come back where nothing hashes: workers publish their capacity twice a second. */
const NO_WORKER_RETRY_MS = 1_000

export interface Admission {
  /** Throws `busy` or `no_worker`. */
  admit(waitMs: number): void
  /** The error of a call that was let in and not answered in time: `expired`, or `no_worker` where that is why. */
  late(): PasswordsError
}

export function createAdmission(
  backend: Pick<Backend, 'load'>,
  maxOutstanding: number,
  now: () => number = () => performance.now(),
): Admission {
  const refusalOf = createOutstandingLimit(maxOutstanding, now)
  let noWorkersSince: number | undefined

  function noWorker(): PasswordsError {
    return new PasswordsError('no_worker', 'no worker is alive', { retryAfterMs: NO_WORKER_RETRY_MS })
  }

  return {
    admit(waitMs) {
      const load = backend.load()
      const lacksWorkers = load.known && load.slots === 0
      noWorkersSince = lacksWorkers ? (noWorkersSince ?? now()) : undefined
      if (noWorkersSince !== undefined && now() - noWorkersSince > NO_WORKER_GRACE_MS) throw noWorker()
      const refused = refusalOf(load, waitMs)
      if (refused === undefined) return
      throw new PasswordsError('busy', 'the answer would come too late', { retryAfterMs: refused.retryAfterS * 1_000 })
    },
    late() {
      const { known, slots } = backend.load()
      return known && slots === 0
        ? noWorker()
        : new PasswordsError('expired', 'there was no answer before the deadline')
    },
  }
}
