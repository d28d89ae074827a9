/** Follows a call to its answer: sends it, redeems its ticket, comes back as the gateway asks. */
import { solverOf } from './challenge.js'
import { isFar, isLost, LEAST_MS, pause, pauseAfter, pauseUntil, untilNear } from './line.js'
import { codeOf, errorOf, type Progress, SpillwayError, type WaitOptions } from './options.js'
import { type HttpAnswer, type Sent, send } from './send.js'
import { numberOf, type StoredTicket, type Ticket, ticketFrom } from './stored-ticket.js'

/** Passing refusals and failures: after these the same request may succeed. */
const PASSING = [408, 425, 429, 500, 502, 503, 504]

interface FollowedCall extends Pick<WaitOptions, 'onProgress' | 'solveChallenge'> {
  /** What to send where there is no ticket; undefined after a reload, when the password is gone. */
  request?: Sent
  redemption: Omit<Sent, 'body'>
  lineUrl: string
  ticket?: Ticket
  stored: StoredTicket
  life: Life
}

/** A call on its way to its answer. */
export class Following<T> {
  readonly #call: FollowedCall
  #request: Sent | undefined
  #ticket: Ticket | undefined
  #requestId: string | undefined
  #attempt = 0
  #failures = 0

  constructor(call: FollowedCall) {
    this.#call = call
    this.#request = call.request
    this.#ticket = call.ticket
  }

  async answer(): Promise<T> {
    try {
      if (this.#ticket) await this.#wait(pauseUntil(this.#ticket.redeemAt), this.#waiting())
      for (;;) {
        const answer = await this.#sendNext()
        if (await this.#isOver(answer)) return resultOf(answer, this.#isTicketLost(answer))
      }
    } finally {
      this.#call.stored.forget()
    }
  }

  /** Whether this answer is the last one; else waits until the next request is due. */
  async #isOver(answer: HttpAnswer): Promise<boolean> {
    const nextMs = pauseAfter(answer, this.#failures)
    this.#failures = answer.retryAfterMs === undefined ? this.#failures + 1 : 0
    const { life, stored, solveChallenge } = this.#call
    const solve = this.#ticket ? undefined : solverOf(answer, solveChallenge)
    if (this.#request && solve) {
      this.#tell('solving')
      this.#request = withSolution(this.#request, await solve(life.signal))
      await this.#wait(LEAST_MS, 'solving', answer)
    } else if (answer.status === 202) {
      this.#ticket = ticketOf(answer, nextMs)
      stored.keep(this.#ticket)
      await this.#approach(this.#ticket, nextMs, answer)
    } else {
      if (this.#isTicketLost(answer) && this.#request) {
        this.#ticket = undefined
        stored.forget()
      } else if (isLast(answer)) return true
      await this.#wait(nextMs, answer.status === 0 ? 'offline' : 'busy', answer)
    }
    return false
  }

  #isTicketLost(answer: HttpAnswer): boolean {
    return this.#ticket !== undefined && isLost(codeOf(answer))
  }

  async #sendNext(): Promise<HttpAnswer> {
    const { redemption, life } = this.#call
    const ticket = this.#ticket
    const next = ticket ? { ...redemption, body: JSON.stringify({ ticket: ticket.ticket }) } : this.#request
    if (next === undefined) throw new Error('there is neither a ticket nor a request')
    this.#attempt++
    this.#tell(ticket ? this.#waiting() : 'sending')
    const answer = await send(next, life.signal)
    this.#requestId = answer.requestId ?? this.#requestId
    return answer
  }

  /** Waits as the gateway asks, and then watches the line until the turn of the ticket is near. */
  async #approach(far: Ticket, nextMs: number, answer: HttpAnswer): Promise<void> {
    const { redemption, lineUrl, stored, life } = this.#call
    const watches = isFar(far, nextMs)
    await this.#wait(nextMs, this.#waiting(), answer)
    if (!watches) return
    await untilNear(far, { url: lineUrl, headers: redemption.headers }, life.signal, async (pauseMs, distance) => {
      const now = Date.now()
      const etaAt = Number.isFinite(distance.leftMs) ? now + distance.leftMs : undefined
      this.#ticket = { ...far, position: distance.ahead, paused: distance.paused, etaAt, redeemAt: now + pauseMs }
      stored.keep(this.#ticket)
      await this.#wait(pauseMs, this.#waiting(), answer)
    })
  }

  async #wait(nextMs: number, state: Progress['state'], answer?: HttpAnswer): Promise<void> {
    const { life } = this.#call
    if (nextMs > life.leftMs()) throw new SpillwayError('gave_up', answer)
    this.#tell(state, { nextMs, code: answer && codeOf(answer) })
    await pause(nextMs, life.signal)
  }

  #waiting(): Progress['state'] {
    return this.#ticket?.paused ? 'paused' : 'queued'
  }

  #tell(state: Progress['state'], more: Pick<Progress, 'nextMs' | 'code'> = {}): void {
    const { position, etaAt } = this.#ticket ?? {}
    const etaS = etaAt && Math.max(0, Math.round((etaAt - Date.now()) / 1_000))
    const requestId = this.#requestId
    this.#call.onProgress?.({ state, attempt: this.#attempt, position, etaS, requestId, ...more })
  }
}

/** Whether no later request could be answered otherwise. */
function isLast(answer: HttpAnswer): boolean {
  return (answer.status !== 0 && !PASSING.includes(answer.status)) || codeOf(answer) === 'challenge_required'
}

function withSolution(request: Sent, solution: string): Sent {
  return { ...request, headers: { ...request.headers, 'spillway-challenge': solution } }
}

function ticketOf(answer: HttpAnswer, nextMs: number): Ticket {
  const etaS = numberOf(answer.body.eta)
  const now = Date.now()
  const etaAt = etaS === undefined ? undefined : now + etaS * 1_000
  const ticket = ticketFrom({ ...answer.body, redeemAt: now + nextMs, etaAt })
  if (ticket === undefined) throw errorOf(answer)
  return ticket
}

function resultOf<T>(answer: HttpAnswer, needsPassword: boolean): T {
  if (answer.status < 200 || answer.status > 299) throw errorOf(answer, needsPassword)
  try {
    return JSON.parse(answer.text || 'null')
  } catch {
    throw errorOf(answer)
  }
}

// The time that a call may take.

const GIVE_UP_AFTER_MS = 600_000
/** The longest delay that setTimeout supports. */
const TIMER_MOST_MS = 2 ** 31 - 1

interface Life {
  /** Fires with the caller's signal, or when it is time to give up. */
  signal: AbortSignal
  leftMs(): number
}

/** Runs a call, and lets go of the caller's signal when it has ended. */
export async function lifetime<T>(
  { signal, giveUpAfterMs = GIVE_UP_AFTER_MS }: WaitOptions,
  call: (life: Life) => Promise<T>,
): Promise<T> {
  if (signal?.aborted) throw reasonOf(signal)
  const end = new AbortController()
  let reason: unknown
  const stop = (why: unknown) => {
    reason = why
    end.abort(why)
  }
  const abort = () => stop(signal && reasonOf(signal))
  signal?.addEventListener('abort', abort)
  const endMs = performance.now() + giveUpAfterMs
  const timer = setTimeout(() => stop(new SpillwayError('gave_up')), Math.min(giveUpAfterMs, TIMER_MOST_MS))
  try {
    return await call({ signal: end.signal, leftMs: () => endMs - performance.now() })
  } catch (error) {
    // In React Native signals have no reason, and what was ended by one rejects without it.
    throw end.signal.aborted ? reason : error
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
  }
}

function reasonOf({ reason }: AbortSignal): unknown {
  return reason ?? Object.assign(new Error('The call was aborted.'), { name: 'AbortError' })
}
