/** Every error a client can get: a coded error with one status and one public sentence (RFC 9457). */
import { type ErrorCode, problems } from '../schemas/problem-codes.js'

/**
 * Why a request was refused, where its code leaves that open. For operators' counters alone: a client must not learn, for
 * instance, whether the account exists.
 */
export const refusalReasons = [
  'predicted_wait',
  'too_many_waiting',
  'gateway_overloaded',
  'address_limit',
  'account_limit',
  'session_limit',
  'ticket_held',
  'wrong_password',
  'unknown_account',
  'unsupported_hash',
  'password_changed',
  'refresh_token_reused',
] as const
export type RefusalReason = (typeof refusalReasons)[number]

/** What is wrong with one field of a request. */
export interface FieldError {
  field: string
  message: string
  /** Only where a client may want to tell it from others. */
  code?: 'password_too_short' | 'password_too_common'
}

export interface ApiErrorOptions extends ErrorOptions {
  /** After how many seconds to try again. */
  retryAfterS?: number
  fields?: FieldError[]
  reason?: RefusalReason
}

/** An error that is meant for the client. Its `cause` is for the log alone. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly code: ErrorCode
  readonly status: number
  readonly retryAfterS: number | undefined
  readonly fields: FieldError[] | undefined
  readonly reason: RefusalReason | undefined

  constructor(code: ErrorCode, options: ApiErrorOptions = {}) {
    super(problems[code].title, options)
    this.code = code
    this.status = problems[code].status
    this.retryAfterS = options.retryAfterS
    this.fields = options.fields
    this.reason = options.reason
  }
}
