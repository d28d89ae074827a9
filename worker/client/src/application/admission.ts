/** Admission of calls: what cannot be answered in time is refused before it costs anything. */
import { Admission, type Refused } from '@spillway/queue/wait/admission'
import { Pace } from '@spillway/queue/wait/refusal-pace'
import type { Backend } from './backend.js'
import { PasswordsError } from './passwords-error.js'

/** How long calls are let in without a worker: a restart of a worker should fail no call. */
const NO_WORKER_GRACE_MS = 2_000
/** When to come back where nothing hashes: workers publish their capacity twice a second. */
const NO_WORKER_RETRY_MS = 1_000

export class CallAdmission {
  readonly #backend: Pick<Backend, 'load'>
  readonly #now: () => number
  readonly #admission: Admission
  readonly #refusals: Pace
  readonly #tickets: Pace
  #noWorkersSince: number | undefined

  constructor(backend: Pick<Backend, 'load'>, maxOutstanding: number, now: () => number = () => performance.now()) {
    this.#backend = backend
    this.#now = now
    const load = () => backend.load()
    // Nobody is held here, and a ticket says itself how long it lives.
    this.#admission = new Admission({ load, predictedWaitMs: () => 0, maxOutstanding, lifeMs: 0, now })
    const perSecond = () => load().jobsPerSecond
    this.#refusals = new Pace({ perSecond })
    this.#tickets = new Pace({ perSecond })
  }

  /** `busy` or `no_worker` for a call that cannot be answered in time. Undefined lets it in. */
  refusalOf(waitMs: number): PasswordsError | undefined {
    return this.#noWorkerForLong() ?? busy(this.#admission.refusalOfCall(waitMs))
  }

  /** The same of a call with a ticket, which waits behind the others. */
  ticketRefusalOf(lifeMs: number): PasswordsError | undefined {
    return this.#noWorkerForLong() ?? busy(this.#admission.refusalOfTicket(lifeMs))
  }

  /** Holds a refusal until it is due: a client that calls again at once gains nothing. */
  refusalIsDue(): Promise<void> {
    return new Promise((resolve) => this.#refusals.whenDue(resolve))
  }

  /** The same of a ticket, which a client may throw away and ask anew. */
  ticketIsDue(): Promise<void> {
    return new Promise((resolve) => this.#tickets.whenDue(resolve))
  }

  /** The error of a call that a worker dropped, because it would have been answered too late. */
  expired(): PasswordsError {
    const retryAfterMs = this.#admission.retryAfterS() * 1_000
    return new PasswordsError('expired', 'there was no answer before the deadline', { retryAfterMs })
  }

  /** The error of a call that nobody took in time. */
  late(): PasswordsError {
    return this.#lacksWorkers() ? noWorker() : this.expired()
  }

  #lacksWorkers(): boolean {
    const { known, slots } = this.#backend.load()
    return known && slots === 0
  }

  #noWorkerForLong(): PasswordsError | undefined {
    this.#noWorkersSince = this.#lacksWorkers() ? (this.#noWorkersSince ?? this.#now()) : undefined
    const isLong = this.#noWorkersSince !== undefined && this.#now() - this.#noWorkersSince > NO_WORKER_GRACE_MS
    return isLong ? noWorker() : undefined
  }
}

function noWorker(): PasswordsError {
  return new PasswordsError('no_worker', 'no worker is alive', { retryAfterMs: NO_WORKER_RETRY_MS })
}

function busy(refused: Refused | undefined): PasswordsError | undefined {
  if (refused === undefined) return undefined
  return new PasswordsError('busy', 'the answer would come too late', { retryAfterMs: refused.retryAfterS * 1_000 })
}
