/** The calls of an application: admitted, bounded by their deadlines, reported to its metrics. */
import cluster from 'node:cluster'
import { setTimeout as sleep } from 'node:timers/promises'
import { isMainThread } from 'node:worker_threads'
import { within } from '@spillway/common/within'
import { pacedMs, type Request } from '@spillway/queue/order'
import type { JobName, Requests, Result } from '@spillway/queue/wire/job'
import { CallAdmission } from './admission.js'
import type { Backend, Followed } from './backend.js'
import { PasswordsError } from './passwords-error.js'
import type { ApplicationTicket } from './tickets.js'
import type { CallOptions } from './types.js'

/** How long a call may take in a process that serves. In any other it has no limit. */
export const WAIT_MS = 8_000
/** The longest delay of a timer. */
export const LONGEST_MS = 2 ** 31 - 1

export type Answered = Exclude<Result, { kind: 'refused' }>

interface RunningCallsOptions {
  waitMs: number | undefined
  maxOutstanding: number
}

export class RunningCalls {
  readonly #backend: Backend
  readonly #options: RunningCallsOptions
  readonly #admission: CallAdmission
  readonly #patience: Patience
  readonly #serving = new Serving()
  readonly #inHand = new Set<AbortController>()
  #isClosed = false

  constructor(backend: Backend, options: RunningCallsOptions) {
    this.#backend = backend
    this.#options = options
    this.#admission = new CallAdmission(() => backend.load(), options.maxOutstanding)
    this.#patience = new Patience(async (leftMs) => {
      if (!backend.load().known) await backend.whenKnown(leftMs)
      const refused = this.#admission.refusalOf(leftMs)
      if (refused !== undefined) throw refused
    })
  }

  /** How long a call without a deadline may take. */
  usualMs(): number {
    return this.#options.waitMs ?? (this.#serving.serves() ? WAIT_MS : Number.POSITIVE_INFINITY)
  }

  /** Runs a request unless it cannot be answered in time. */
  async run<Name extends JobName>(
    name: Name,
    request: Requests[Name],
    { signal, deadline }: CallOptions,
  ): Promise<Answered> {
    const answer = async (call: AbortSignal) => {
      const result = await this.#runWithin(remainingMs(deadline, this.usualMs()), name, request, call)
      if (result !== undefined) return accepted(result)
      this.throwIfOver(signal)
      throw this.#admission.late()
    }
    return await this.untilClosed(signal, answer)
  }

  async #runWithin<Name extends JobName>(
    totalMs: number,
    name: Name,
    request: Requests[Name],
    signal: AbortSignal,
  ): Promise<Result | undefined> {
    const backend = this.#backend
    if (totalMs === Number.POSITIVE_INFINITY)
      return await this.#patience.attempt((waitMs) => backend.perform(name, request, { waitMs, signal }), signal)
    const endsAt = performance.now() + totalMs
    const left = () => Math.max(0, endsAt - performance.now())
    if (!backend.load().known) await within(left(), backend.whenKnown(left()), signal)
    if (signal.aborted) return undefined
    const refused = this.#admission.refusalOf(left())
    if (refused !== undefined) throw await paced(refused, left(), signal)
    // Nothing is awaited between: a call counts as soon as it is admitted.
    return await backend.perform(name, request, { waitMs: left(), signal })
  }

  /** Rejects where a call would be refused. */
  async admit(signal: AbortSignal): Promise<void> {
    await this.untilClosed(signal, async (call) => {
      const totalMs = Math.min(this.usualMs(), LONGEST_MS)
      await this.known(totalMs, call)
      this.throwIfOver(signal)
      const refused = this.#admission.refusalOf(totalMs)
      if (refused !== undefined) throw await paced(refused, totalMs, call)
    })
  }

  /** Holds the client of a new ticket, for a moment: a client that throws tickets away gains nothing. */
  async begin(ticket: ApplicationTicket, lifeMs: number, call: AbortSignal): Promise<Followed> {
    const refused = this.#admission.noWorkers()
    if (refused !== undefined) throw await paced(refused, lifeMs, call)
    const request = { holdMs: 0, ticketLifeMs: lifeMs, goesBeforeTickets: false }
    const followed = await this.#follow(ticket, request, pacedMs(lifeMs), call)
    this.throwIfOver(undefined)
    return followed
  }

  /** Holds a client that comes back with its ticket. */
  async redeem(ticket: ApplicationTicket, holdMs: number, lifeMs: number, call: AbortSignal): Promise<Followed> {
    const request = { holdMs, ticketLifeMs: lifeMs, goesBeforeTickets: true }
    return await this.#follow(ticket, request, Math.min(holdMs, lifeMs), call)
  }

  /** @param request the request that needs a place, if no job of the ticket is left */
  async #follow(ticket: ApplicationTicket, request: Request, holdMs: number, signal: AbortSignal): Promise<Followed> {
    try {
      const place = () => this.#admission.placeOf(request)
      return await this.#backend.follow(ticket, { place, holdMs, signal })
    } catch (error) {
      if (!(error instanceof PasswordsError) || error.code !== 'busy') throw error
      throw await paced(error, request.ticketLifeMs, signal)
    }
  }

  /** Resolves once the load is known, or after this time. */
  async known(waitMs: number, call: AbortSignal): Promise<void> {
    if (!this.#backend.load().known) await within(waitMs, this.#backend.whenKnown(waitMs), call)
  }

  /** Gives a call a signal that fires with its own signal, and when all is closed. */
  async untilClosed<T>(signal: AbortSignal | undefined, run: (call: AbortSignal) => Promise<T>): Promise<T> {
    this.throwIfOver(signal)
    const call = new AbortController()
    const abort = () => call.abort()
    this.#inHand.add(call)
    signal?.addEventListener('abort', abort)
    try {
      return await run(call.signal)
    } finally {
      this.#inHand.delete(call)
      signal?.removeEventListener('abort', abort)
    }
  }

  throwIfOver(signal: AbortSignal | undefined): void {
    signal?.throwIfAborted()
    if (this.#isClosed) throw new PasswordsError('closed', 'close() was called')
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    for (const call of this.#inHand) call.abort()
    await this.#backend.close()
  }
}

/** The search for servers takes long if much keeps a process alive. */
const LOOK_AGAIN_MS = 100

/**
 * Whether this process answers requests of others, over TCP. In a script nobody gives up waiting. A
 * server at a path is not seen: an application behind one sets `waitMs`.
 */
class Serving {
  /** Stays true once it is true. True also if it cannot be known: in a thread, or without Node. */
  #serves = cluster.isWorker || !isMainThread || typeof process.getActiveResourcesInfo !== 'function'
  #lookedAt = Number.NEGATIVE_INFINITY

  serves(): boolean {
    const now = performance.now()
    if (this.#serves || now - this.#lookedAt < LOOK_AGAIN_MS) return this.#serves
    this.#lookedAt = now
    this.#serves = process.getActiveResourcesInfo().includes('TCPServerWrap')
    return this.#serves
  }
}

/** How long a call may take. Throws `expired` when its deadline has passed. */
function remainingMs(deadline: number | Date | undefined, waitMs: number): number {
  const leftMs = deadline === undefined ? waitMs : Number(deadline) - Date.now()
  if (Number.isNaN(leftMs)) throw new TypeError('a deadline is a Date or epoch milliseconds')
  if (leftMs <= 0) throw new PasswordsError('expired', 'the deadline has passed')
  return leftMs === Number.POSITIVE_INFINITY ? leftMs : Math.min(leftMs, LONGEST_MS)
}

/** The refusal, once it is due: a client that calls again at once gains nothing. */
async function paced(refused: PasswordsError, leftMs: number, signal: AbortSignal): Promise<PasswordsError> {
  await within(pacedMs(leftMs), new Promise(() => undefined), signal)
  return refused
}

const REFUSALS = {
  unsupported_hash: 'nothing here makes or verifies such a hash',
  unsupported_password: 'bcrypt would truncate this password (72 bytes)',
  hashing_failed: 'the hash failed',
}

/** The result; throws if a worker refused. */
export function accepted(result: Result): Answered {
  if (result.kind !== 'refused') return result
  throw new PasswordsError(result.code, REFUSALS[result.code])
}

// Calls without a deadline wait in their order until there is room: neither the queue nor the
// process beside holds more than a minute's work. If nothing hashes, they are refused like others.

/** How long one attempt may wait to be hashed. */
const ATTEMPT_MS = 60_000
const ADMIT_AGAIN_MS = 100
/** The share of an attempt that admission may predict as its wait: predictions may be wrong. */
const SHARE = 0.5

export class Patience {
  readonly #admit: (waitMs: number) => Promise<void>
  #last: Promise<unknown> = Promise.resolve()

  /** @param admit throws `busy` for a call that would not be answered within this time */
  constructor(admit: (waitMs: number) => Promise<void>) {
    this.#admit = admit
  }

  /** The first result of an attempt; undefined when the signal fires first. */
  async attempt<T>(perform: (waitMs: number) => Promise<T | undefined>, signal: AbortSignal): Promise<T | undefined> {
    while (!signal.aborted) {
      const turn = this.#admitted(this.#last, signal)
      this.#last = turn.catch(() => undefined)
      await turn
      const result = signal.aborted ? undefined : await perform(ATTEMPT_MS)
      if (result !== undefined) return result
    }
    return undefined
  }

  async #admitted(before: Promise<unknown>, signal: AbortSignal): Promise<void> {
    await before
    while (!signal.aborted) {
      try {
        return await this.#admit(ATTEMPT_MS * SHARE)
      } catch (error) {
        if (!(error instanceof PasswordsError) || error.code !== 'busy') throw error
        await sleep(ADMIT_AGAIN_MS)
      }
    }
  }
}
