/** Errors of the public API, each with a stable code. */

/**
 * - `busy`: the answer would come too late; try again after `retryAfterMs`
 * - `expired`: the deadline passed before there was an answer, or workers dropped a call that could
 *   only be answered after it
 * - `no_worker`: nothing hashes at the moment; `retryAfterMs` says when to try again
 * - `queue_unavailable`: Redis did not take the job
 * - `wrong_keys`: the workers of the queue have other seal keys than this application
 * - `unsupported_hash`: the hash is of no supported algorithm or cost
 * - `unsupported_password`: bcrypt would truncate the password (over 72 bytes, or with a NUL), or
 *   it is too long for the queue
 * - `unsupported_policy`: such a hash takes more memory than a slot has, or a worker made another
 *   kind of hash than it was asked for
 * - `hashing_failed`: the hash itself failed; the log of the worker says why
 * - `not_installed`: no implementation of the hashes loads here; the message says what to install
 * - `invalid_ticket`, `ticket_expired`, `ticket_used`, `ticket_lost`: a ticket that will not be
 *   answered; the first request may be sent again
 * - `hash_replaced`: another stored hash took the place of the verified one while a ticket waited;
 *   the first request may be sent again
 * - `closed`: close() was called
 */
export type PasswordsErrorCode =
  | 'busy'
  | 'expired'
  | 'no_worker'
  | 'queue_unavailable'
  | 'wrong_keys'
  | 'unsupported_hash'
  | 'unsupported_password'
  | 'unsupported_policy'
  | 'hashing_failed'
  | 'not_installed'
  | 'invalid_ticket'
  | 'ticket_expired'
  | 'ticket_used'
  | 'ticket_lost'
  | 'hash_replaced'
  | 'closed'

/** 503 for what may succeed later, as a gateway answers; 500 for what is not here. */
const STATUS: Partial<Record<PasswordsErrorCode, number>> = {
  ...{ busy: 503, expired: 503, no_worker: 503, queue_unavailable: 503 },
  ...{ invalid_ticket: 400, ticket_used: 409, ticket_expired: 410, ticket_lost: 410, hash_replaced: 410 },
}

export class PasswordsError extends Error {
  override readonly name = 'PasswordsError'
  readonly code: PasswordsErrorCode
  /** When to try again, in milliseconds from now. */
  readonly retryAfterMs: number | undefined
  /**
   * Express, Fastify, Koa and NestJS answer with the status, and the first three with the headers,
   * of an error that a route throws.
   */
  readonly statusCode: number
  readonly headers: Readonly<Record<string, string>>

  constructor(code: PasswordsErrorCode, message: string, options: { retryAfterMs?: number; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause })
    this.code = code
    this.retryAfterMs = options.retryAfterMs
    this.statusCode = STATUS[code] ?? 500
    this.headers =
      options.retryAfterMs === undefined ? {} : { 'retry-after': String(Math.ceil(options.retryAfterMs / 1_000)) }
  }

  /** What Hono answers with to an error that a route throws. */
  getResponse(): Response {
    const { statusCode: status, headers, code, message } = this
    return Response.json({ statusCode: status, code, message }, { status, headers })
  }
}
