/** Errors for clients: a code determines status and public sentence (RFC 9457). */
import { StacklessError } from '@spillway/queue/errors'
import { type ErrorCode, problems } from '../schemas/problem-codes.js'
import type { Challenge } from '../schemas/responses.js'

/**
 * Why a request was refused, where its code leaves that open. Only the metrics show it: a client
 * must not learn whether the account exists.
 */
export const refusalReasons = [
  'predicted_wait',
  'too_many_waiting',
  'gateway_overloaded',
  'address_limit',
  'account_limit',
  'guesses_delayed',
  'guesses_challenged',
  'session_limit',
  'service_limit',
  'mail_limit',
  'ticket_held',
  'old_system',
  'database',
  'redis',
  'wrong_password',
  'unknown_account',
  'account_barred',
  'network_blocked',
  'unsupported_hash',
  'password_changed',
  'refresh_token_reused',
] as const
export type RefusalReason = (typeof refusalReasons)[number]

export interface FieldError {
  field: string
  message: string
  /** Present only where clients may need to distinguish the error. */
  code?: 'password_too_short' | 'password_too_long' | 'password_too_common'
}

interface ApiErrorOptions extends ErrorOptions {
  retryAfterS?: number
  fields?: FieldError[]
  reason?: RefusalReason
  /** What the client may solve instead of waiting. */
  challenge?: Challenge
}

/** An error that is sent to the client. Its `cause` is only logged. */
export class ApiError extends StacklessError {
  override readonly name = 'ApiError'
  readonly code: ErrorCode
  readonly status: number
  readonly retryAfterS: number | undefined
  readonly fields: FieldError[] | undefined
  readonly reason: RefusalReason | undefined
  readonly challenge: Challenge | undefined

  constructor(code: ErrorCode, options: ApiErrorOptions = {}) {
    super(problems[code].detail, options)
    this.code = code
    this.status = problems[code].status
    this.retryAfterS = options.retryAfterS
    this.fields = options.fields
    this.reason = options.reason
    this.challenge = options.challenge
  }
}
