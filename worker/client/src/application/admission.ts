/**
 * Admission of calls, by the order of the line (@spillway/queue/order): a call that cannot be
 * answered in time is refused before it costs anything.
 */
import { type Load, type Place, placeOf, Refusals, type Request, roomOfLine } from '@spillway/queue/order'
import { PasswordsError } from './passwords-error.js'

/** How long calls are accepted without a worker: the restart of a worker must not fail calls. */
const NO_WORKER_GRACE_MS = 2_000
/** The retry time while nothing hashes: workers publish their capacity twice a second. */
const NO_WORKER_RETRY_MS = 1_000

export class CallAdmission {
  readonly #load: () => Load
  readonly #maxOutstanding: number
  readonly #now: () => number
  readonly #refusals: Refusals
  #noWorkersSince: number | undefined

  constructor(load: () => Load, maxOutstanding: number, now: () => number = () => performance.now()) {
    this.#load = load
    this.#maxOutstanding = maxOutstanding
    this.#now = now
    this.#refusals = new Refusals(now)
  }

  /** `busy` or `no_worker` for a call that cannot be answered in time. Undefined lets it in. */
  refusalOf(waitMs: number): PasswordsError | undefined {
    const load = this.#load()
    // Calls go before tickets. While no capacity is known, the last known one counts.
    const ofCalls = { ...load, line: 0, jobsPerSecond: load.jobsPerSecond || load.linePerSecond }
    const request = { holdMs: waitMs, ticketLifeMs: 0, goesBeforeTickets: true }
    const isOpen = placeOf(ofCalls, request, this.#maxOutstanding) === 'open'
    return this.noWorkers() ?? (isOpen ? undefined : this.#busy())
  }

  /** The place of a request that has or gets a ticket. Throws `busy`. */
  placeOf(request: Request): Exclude<Place, 'refused'> {
    const load = this.#load()
    const place = placeOf(load, request, this.#maxOutstanding)
    // Open calls go before it, too.
    const hasRoom = place === 'open' || load.open + load.line < roomOfLine(load, request.ticketLifeMs)
    if (place === 'refused' || !hasRoom) throw this.#busy()
    return place
  }

  /** `no_worker` if there has been no worker for a while. */
  noWorkers(): PasswordsError | undefined {
    this.#noWorkersSince = this.#lacksWorkers() ? (this.#noWorkersSince ?? this.#now()) : undefined
    const isLong = this.#noWorkersSince !== undefined && this.#now() - this.#noWorkersSince > NO_WORKER_GRACE_MS
    return isLong ? noWorker() : undefined
  }

  /** The error of a call whose time ran out. */
  late(): PasswordsError {
    if (this.#lacksWorkers()) return noWorker()
    return new PasswordsError('expired', 'there was no result before the deadline', this.#retryAfter())
  }

  #lacksWorkers(): boolean {
    const { known, slots } = this.#load()
    return known && slots === 0
  }

  #busy(): PasswordsError {
    return new PasswordsError('busy', 'the result would come too late', this.#retryAfter())
  }

  #retryAfter(): { retryAfterMs: number } {
    const { jobsPerSecond, linePerSecond } = this.#load()
    return { retryAfterMs: this.#refusals.retryAfterS(jobsPerSecond || linePerSecond) * 1_000 }
  }
}

function noWorker(): PasswordsError {
  return new PasswordsError('no_worker', 'no worker is alive', { retryAfterMs: NO_WORKER_RETRY_MS })
}
