/** Errors of the public API, each with a stable code. */

/** What each means: README.md, Errors. */
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
  | 'hash_replaced'
  | 'closed'

/** 503 if a call may succeed later, as gateways answer; 500 if something is missing here. */
const STATUS: Partial<Record<PasswordsErrorCode, number>> = {
  ...{ busy: 503, expired: 503, no_worker: 503, queue_unavailable: 503 },
  ...{ invalid_ticket: 400, ticket_used: 409, ticket_expired: 410, hash_replaced: 410 },
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
}
