/** The calls of an application: admitted, bounded by their deadlines, told to its metrics. */
import cluster from 'node:cluster'
import { setTimeout as sleep } from 'node:timers/promises'
import { isMainThread } from 'node:worker_threads'
import { within } from '@spillway/common/within'
import { hasServersAtPaths } from '@spillway/queue/inside/node'
import type { JobName, Requests, Verdict } from '@spillway/queue/wire/job'
import { CallAdmission } from './admission.js'
import type { Backend } from './backend.js'
import { PasswordsError } from './passwords-error.js'
import type { CallOptions, Logger, ObservedCall } from './types.js'

/** How long a call may take in a process that serves. In any other it has no limit. */
export const WAIT_MS = 8_000
/** The longest delay of a timer. */
export const LONGEST_MS = 2 ** 31 - 1

export type Answered = Exclude<Verdict, { kind: 'refused' }>

interface RunningCallsOptions {
  waitMs: number | undefined
  maxOutstanding: number
  onCall: ((call: ObservedCall) => void) | undefined
  log: Logger
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
    this.#admission = new CallAdmission(backend, options.maxOutstanding)
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
      const verdict = await this.#runWithin(remainingMs(deadline, this.usualMs()), name, request, call)
      if (verdict !== undefined && !isExpired(verdict)) return accepted(verdict)
      this.throwIfOver(signal)
      throw verdict === undefined ? this.#admission.late() : this.#admission.expired()
    }
    return await this.#observed(name, signal, () => this.untilClosed(signal, answer))
  }

  async #runWithin<Name extends JobName>(
    totalMs: number,
    name: Name,
    request: Requests[Name],
    signal: AbortSignal,
  ): Promise<Verdict | undefined> {
    const backend = this.#backend
    if (totalMs === Number.POSITIVE_INFINITY)
      return await this.#patience.attempt(async (waitMs) => {
        const verdict = await backend.perform(name, request, { waitMs, signal })
        return verdict !== undefined && isExpired(verdict) ? undefined : verdict
      }, signal)
    const endsAt = performance.now() + totalMs
    const left = () => Math.max(0, endsAt - performance.now())
    if (!backend.load().known) await within(left(), backend.whenKnown(left()), signal)
    if (signal.aborted) return undefined
    const refused = this.#admission.refusalOf(left())
    if (refused !== undefined) throw await this.#whenDue(refused, left(), signal)
    // Nothing is awaited between: a call counts as soon as it is let in.
    return await backend.perform(name, request, { waitMs: left(), signal })
  }

  /** Rejects where a call would be refused. */
  async admit(signal: AbortSignal): Promise<void> {
    await this.#observed('verify', signal, () =>
      this.untilClosed(signal, async (call) => {
        const totalMs = Math.min(this.usualMs(), LONGEST_MS)
        await this.known(totalMs, call)
        this.throwIfOver(signal)
        const refused = this.#admission.refusalOf(totalMs)
        if (refused !== undefined) throw await this.#whenDue(refused, totalMs, call)
        return undefined
      }),
    )
  }

  /** Rejects where a ticket with this life would be refused; else resolves when one is due. */
  async admitTicket(lifeMs: number, call: AbortSignal): Promise<void> {
    await this.known(WAIT_MS, call)
    this.throwIfOver(undefined)
    const refused = this.#admission.ticketRefusalOf(lifeMs)
    if (refused !== undefined) throw await this.#whenDue(refused, WAIT_MS, call)
    await within(WAIT_MS, this.#admission.ticketIsDue(), call)
    this.throwIfOver(undefined)
  }

  /** Resolves once the load is known, or after this time. */
  async known(waitMs: number, call: AbortSignal): Promise<void> {
    if (!this.#backend.load().known) await within(waitMs, this.#backend.whenKnown(waitMs), call)
  }

  async #whenDue(refused: PasswordsError, leftMs: number, signal: AbortSignal): Promise<PasswordsError> {
    await within(leftMs, this.#admission.refusalIsDue(), signal)
    return refused
  }

  /** Gives a call a signal that fires with its own, and when all is closed. */
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

  /** Tells how a call ended. Errors in arguments and results without a verdict are no calls. */
  async #observed<T extends Answered | undefined>(
    call: ObservedCall['call'],
    signal: AbortSignal | undefined,
    run: () => Promise<T>,
  ): Promise<T> {
    const { onCall, log } = this.#options
    if (onCall === undefined) return await run()
    const startMs = performance.now()
    const ended = (outcome: ObservedCall['outcome']): void => {
      try {
        onCall({ call, by: this.#backend.by, outcome, ms: performance.now() - startMs })
      } catch (error) {
        log.error({ err: error }, 'onCall failed')
      }
    }
    try {
      const verdict = await run()
      if (verdict !== undefined) ended(verdict.kind)
      return verdict
    } catch (error) {
      if (error instanceof PasswordsError) ended(error.code)
      else if (signal?.aborted) ended('aborted')
      throw error
    }
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    for (const call of this.#inHand) call.abort()
    await this.#backend.close()
  }
}

/** Looking for servers takes long where much keeps a process alive. */
const LOOK_AGAIN_MS = 100

/** Whether this process answers requests of others. In a script nobody gives up waiting. */
class Serving {
  /** Once true, until the end. True also where it cannot be known: in a thread, or without Node. */
  #serves = cluster.isWorker || !isMainThread || typeof process.getActiveResourcesInfo !== 'function'
  #lookedAt = Number.NEGATIVE_INFINITY

  serves(): boolean {
    const now = performance.now()
    if (this.#serves || now - this.#lookedAt < LOOK_AGAIN_MS) return this.#serves
    this.#lookedAt = now
    this.#serves = process.getActiveResourcesInfo().includes('TCPServerWrap') || hasServersAtPaths()
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

/** Whether a worker dropped the work, because its answer would have come too late. */
function isExpired(verdict: Verdict): boolean {
  return verdict.kind === 'refused' && verdict.code === 'expired'
}

const REFUSALS = {
  // Of a ticket: other calls are `expired` themselves.
  expired: ['ticket_expired', 'the ticket has expired'],
  unavailable: ['queue_unavailable', 'no verdict could be had'],
  unsupported_hash: ['unsupported_hash', 'nothing here makes or verifies such a hash'],
  unsupported_password: ['unsupported_password', 'bcrypt would truncate this password (72 bytes)'],
  hashing_failed: ['hashing_failed', 'the hash failed'],
} as const

/** The verdict; throws where a worker refused. */
export function accepted(verdict: Verdict): Answered {
  if (verdict.kind !== 'refused') return verdict
  const [code, message] = REFUSALS[verdict.code]
  throw new PasswordsError(code, message)
}

// Calls without a deadline wait in their order until there is room: neither the queue nor the
// process beside holds more than a minute's work. Where nothing hashes they are refused as others.

/** How long one attempt may wait to be hashed. */
export const ATTEMPT_MS = 60_000
const ADMIT_AGAIN_MS = 100
/** Of what admission takes for the rest of an attempt: its prediction may be wrong. */
const SHARE = 0.5

export class Patience {
  readonly #admit: (waitMs: number) => Promise<void>
  #last: Promise<unknown> = Promise.resolve()

  /** @param admit throws `busy` for a call that would not be answered within this time */
  constructor(admit: (waitMs: number) => Promise<void>) {
    this.#admit = admit
  }

  /** The first verdict of an attempt; undefined when the signal fires first. */
  async attempt<T>(perform: (waitMs: number) => Promise<T | undefined>, signal: AbortSignal): Promise<T | undefined> {
    while (!signal.aborted) {
      const turn = this.#admitted(this.#last, signal)
      this.#last = turn.catch(() => undefined)
      await turn
      const verdict = signal.aborted ? undefined : await perform(ATTEMPT_MS)
      if (verdict !== undefined) return verdict
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
