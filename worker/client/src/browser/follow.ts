/**
 * Follows a call to its answer: sends it, redeems its ticket, and comes back as the gateway asks.
 */
import { solverOf } from './challenge.js'
import { isFar, isLost, LEAST_MS, pause, pauseAfter, pauseUntil, untilNear } from './line.js'
import { codeOf, errorOf, type Progress, SpillwayError, type WaitOptions } from './options.js'
import { type HttpAnswer, type Sent, send } from './send.js'
import { numberOf, type StoredTicket, type Ticket, ticketFrom } from './stored-ticket.js'

/**
 * After these the same request may succeed: refusals for the moment, failures of the gateway or of
 * a balancer in front of it.
 */
const PASSING = [408, 425, 429, 500, 502, 503, 504]

export interface Followed extends Pick<WaitOptions, 'onProgress' | 'solveChallenge'> {
  /** What to send where there is no ticket; undefined after a reload, when the password is gone. */
  request?: Sent
  redemption: Omit<Sent, 'body'>
  lineUrl: string
  ticket?: Ticket
  stored: StoredTicket
  life: Life
}

export async function follow<T>(options: Followed): Promise<T> {
  const { redemption, lineUrl, stored, life, onProgress, solveChallenge } = options
  let { request, ticket } = options
  let attempt = 0
  let failures = 0

  function tell(state: Progress['state'], more: Pick<Progress, 'nextMs' | 'code'> = {}): void {
    const { position, etaAt } = ticket ?? {}
    const etaS = etaAt && Math.max(0, Math.round((etaAt - Date.now()) / 1_000))
    onProgress?.({ state, attempt, position, etaS, ...more })
  }

  /** Of a call with a ticket. */
  const waiting = () => (ticket?.paused ? 'paused' : 'queued')

  async function wait(nextMs: number, state: Progress['state'], answer?: HttpAnswer): Promise<void> {
    if (nextMs > life.leftMs()) throw new SpillwayError('gave_up', answer)
    tell(state, { nextMs, code: answer && codeOf(answer) })
    await pause(nextMs, life.signal)
  }

  /** Waits as the gateway asks, and then watches the line until the turn of the ticket is near. */
  async function approach(far: Ticket, nextMs: number, answer: HttpAnswer): Promise<void> {
    const watches = isFar(far, nextMs)
    await wait(nextMs, waiting(), answer)
    if (!watches) return
    await untilNear(far, { url: lineUrl, headers: redemption.headers }, life.signal, async (pauseMs, distance) => {
      const now = Date.now()
      const etaAt = Number.isFinite(distance.leftMs) ? now + distance.leftMs : undefined
      ticket = { ...far, position: distance.ahead, paused: distance.paused, etaAt, redeemAt: now + pauseMs }
      stored.keep(ticket)
      await wait(pauseMs, waiting(), answer)
    })
  }

  function sendNext(): Promise<HttpAnswer> {
    const next = ticket ? { ...redemption, body: JSON.stringify({ ticket: ticket.ticket }) } : request
    if (next === undefined) throw new Error('there is neither a ticket nor a request')
    attempt++
    tell(ticket ? waiting() : 'sending')
    return send(next, life.signal)
  }

  try {
    if (ticket) await wait(pauseUntil(ticket.redeemAt), waiting())
    for (;;) {
      const answer = await sendNext()
      const isTicketLost = ticket !== undefined && isLost(codeOf(answer))
      const nextMs = pauseAfter(answer, failures)
      failures = answer.retryAfterMs === undefined ? failures + 1 : 0
      const state: Progress['state'] = answer.status === 0 ? 'offline' : 'busy'
      const solve = ticket ? undefined : solverOf(answer, solveChallenge)
      if (request && solve) {
        tell('solving')
        request = withSolution(request, await solve(life.signal))
        await wait(LEAST_MS, 'solving', answer)
        continue
      }
      if (answer.status === 202) {
        ticket = ticketOf(answer, nextMs)
        stored.keep(ticket)
        await approach(ticket, nextMs, answer)
        continue
      }
      if (isTicketLost && request) {
        ticket = undefined
        stored.forget()
      } else if ((answer.status !== 0 && !PASSING.includes(answer.status)) || codeOf(answer) === 'challenge_required') {
        return resultOf(answer, isTicketLost)
      }
      await wait(nextMs, state, answer)
    }
  } finally {
    stored.forget()
  }
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
  signal?.throwIfAborted()
  const end = new AbortController()
  const abort = () => end.abort(signal?.reason)
  signal?.addEventListener('abort', abort)
  const endMs = performance.now() + giveUpAfterMs
  const timer = setTimeout(() => end.abort(new SpillwayError('gave_up')), Math.min(giveUpAfterMs, TIMER_MOST_MS))
  try {
    return await call({ signal: end.signal, leftMs: () => endMs - performance.now() })
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
  }
}
