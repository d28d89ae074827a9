/** What every waiting call takes, and tells while it waits. */
import type { SolveChallenge } from './challenge.js'
import type { HttpAnswer } from './send.js'
import type { TicketStorage } from './stored-ticket.js'

/**
 * The states of a call. A page has words for each.
 *
 * - `sending`: the request is with the gateway, which has given no ticket yet
 * - `solving`: the gateway holds guessing back, and its challenge is solved
 * - `queued`: there is a ticket, and the answer is waited for
 * - `paused`: there is a ticket, and operators have paused the queue: nobody gets in until they
 *   resume it
 * - `busy`: the gateway refused for the moment (429, 503), or a part of the service failed; `code`
 *   says which
 * - `offline`: a request got no answer
 */
export const progressStates = ['sending', 'solving', 'queued', 'paused', 'busy', 'offline'] as const

export interface Progress {
  state: (typeof progressStates)[number]
  /** Requests so far, from 1. */
  attempt: number
  /** How many are ahead in the queue, if the gateway told. */
  position?: number | undefined
  /** Seconds until the answer is expected, from now, if the gateway told. */
  etaS?: number | undefined
  /** Until the next request, in milliseconds; undefined while one is under way. */
  nextMs?: number | undefined
  /** Of the problem that the gateway answered with, with `busy`. */
  code?: string | undefined
  /** Support code of the call: by it, operators find what became of it. */
  requestId?: string | undefined
}

export interface WaitOptions {
  /** Of the gateway, with a path if it is behind one [the origin of the page]. */
  baseUrl?: string | undefined
  /** Whether cookies keep sessions (SESSION_COOKIE): then other origins get them, too [false]. */
  sessionCookie?: boolean | undefined
  /** Is called at every step. What it throws ends the call. */
  onProgress?: ((progress: Progress) => void) | undefined
  /** Ends the call with the signal's reason, and forgets its ticket. */
  signal?: AbortSignal | undefined
  /** Storage of the ticket over a reload [sessionStorage, if there is one]; null: memory. */
  storage?: TicketStorage | null | undefined
  /** Ends the call as `gave_up`, in milliseconds [ten minutes]. */
  giveUpAfterMs?: number | undefined
  /** Whole seconds that the gateway may hold a request [20], bounded by its LOGIN_WAIT_MS. */
  holdS?: number | undefined
  /**
   * Solves a challenge of the gateway [proof of work by the page; the challenge of another service
   * ends the call as `challenge_required`].
   */
  solveChallenge?: SolveChallenge | undefined
  /** Sent with every request. */
  headers?: Readonly<Record<string, string>> | undefined
}

/** The error of waiting calls. */
export class SpillwayError extends Error {
  override readonly name = 'SpillwayError'
  /** Code of the gateway's problem (RFC 9457), `gave_up`, or `unexpected_answer`. */
  readonly code: string
  /** Of the last answer; 0 without an answer. */
  readonly status: number
  /** The body of that answer, if it is JSON: `errors` of `invalid_request`, for instance. */
  readonly problem: unknown
  /** When to try again at the earliest, in milliseconds, if the gateway told. */
  readonly retryAfterMs: number | undefined
  /** Support code of that answer: by it, operators find what became of the call. */
  readonly requestId: string | undefined
  /** Whether only the ticket is lost: with the password the call can be made again. */
  readonly needsPassword: boolean

  constructor(code: string, answer?: HttpAnswer, needsPassword = false) {
    super(typeof answer?.body.detail === 'string' ? answer.body.detail : code)
    this.code = code
    this.status = answer?.status ?? 0
    this.problem = answer?.body
    this.retryAfterMs = answer?.retryAfterMs
    this.requestId = answer?.requestId
    this.needsPassword = needsPassword
  }
}

/** The error of an answer that ends the call. */
export function errorOf(answer: HttpAnswer, needsPassword = false): SpillwayError {
  return new SpillwayError(codeOf(answer) ?? 'unexpected_answer', answer, needsPassword)
}

export function codeOf({ body }: HttpAnswer): string | undefined {
  return typeof body.code === 'string' ? body.code : undefined
}
