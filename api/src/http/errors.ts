/** Errors for clients: a code determines status and public sentence (RFC 9457). */
import { isDatabaseUnavailable, mayHaveHappened } from '@spillway/prisma'
import { PasswordClientError } from '@spillway/queue/client'
import { StacklessError } from '@spillway/queue/errors'
import type { FastifyError } from 'fastify'
import { formatMessages } from '../schemas/credentials.js'
import { type ErrorCode, problems } from '../schemas/problem-codes.js'

/**
 * Why a request was refused, if its code does not tell. Only the metrics show it: a client must not
 * learn whether the account exists.
 */
export const refusalReasons = [
  'predicted_wait',
  'too_many_waiting',
  'gateway_overloaded',
  'address_limit',
  'account_limit',
  'guesses_delayed',
  'session_limit',
  'service_limit',
  'mail_limit',
  'database',
  'redis',
  'wrong_password',
  'unknown_account',
  'account_disabled',
  'address_unconfirmed',
  'no_password',
  'network_blocked',
  'unsupported_hash',
  'password_changed',
  'sessions_ended',
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
}

/** An error that is sent to the client. Its `cause` is only logged. */
export class ApiError extends StacklessError {
  override readonly name = 'ApiError'
  readonly code: ErrorCode
  readonly status: number
  readonly retryAfterS: number | undefined
  readonly fields: FieldError[] | undefined
  readonly reason: RefusalReason | undefined

  constructor(code: ErrorCode, options: ApiErrorOptions = {}) {
    super(problems[code].detail, options)
    this.code = code
    this.status = problems[code].status
    this.retryAfterS = options.retryAfterS
    this.fields = options.fields
    this.reason = options.reason
  }
}

/** Fastify's codes of requests that fail before their handler. */
const fastifyCodes: Record<string, ErrorCode> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_CTP_BODY_TOO_LARGE: 'body_too_large',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'malformed_request',
  FST_ERR_CTP_INVALID_JSON_BODY: 'malformed_request',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'malformed_request',
  FST_ERR_BAD_URL: 'malformed_request',
  FST_BASIC_AUTH_MISSING_OR_BAD_AUTHORIZATION_HEADER: 'operators_only',
}

/** Statuses of plugin errors without a known code. Other statuses become `malformed_request`. */
const codesByStatus: Record<number, ErrorCode> = {
  403: 'forbidden',
  404: 'not_found',
  412: 'precondition_failed',
  416: 'range_not_satisfiable',
}

/**
 * The most field errors, and the longest field name in UTF-16 units. They keep an answer below
 * 2,048 bytes, so that it cannot amplify requests.
 */
const FIELD_ERRORS_MAX = 10
const FIELD_NAME_MAX = 40

/** One invalid field, for a rule that no schema can express. */
export function invalid(field: string, message: string): ApiError {
  return new ApiError('invalid_request', { fields: [{ field, message }] })
}

/**
 * Converts errors of Fastify, its plugins, validation, PostgreSQL and Redis to coded errors. An
 * error that a client must not see becomes `internal_error` or `unavailable`, and is kept as the
 * cause.
 */
export function toApiError(error: FastifyError): ApiError {
  if (error instanceof ApiError) return error
  if (error.validation !== undefined) return new ApiError('invalid_request', { fields: fieldErrors(error) })
  const known = fastifyCodes[error.code]
  if (known !== undefined) return new ApiError(known)
  // The client disconnected: nobody gets this answer, and it is no failure to log.
  if (error instanceof PasswordClientError && error.code === 'wait_aborted') return new ApiError('unavailable')
  if (error instanceof PasswordClientError && (error.code === 'invalid_ticket' || error.code === 'ticket_expired'))
    return new ApiError(error.code, { cause: error.cause })
  if (error instanceof PasswordClientError && error.code === 'request_too_long')
    return invalid('body', 'is too long for a job')
  if (error instanceof PasswordClientError) return redisUnavailable(error)
  if (isDatabaseUnavailable(error))
    return new ApiError('unavailable', { cause: error, reason: 'database', retryAfterS: 1 })
  const { statusCode = 500 } = error
  if (statusCode >= 400 && statusCode < 500) return new ApiError(codesByStatus[statusCode] ?? 'malformed_request')
  return new ApiError('internal_error', { cause: error })
}

/** Rejects with `unavailable` if Redis does not answer, or answers with an error. */
export async function orUnavailable<T>(asked: Promise<T>): Promise<T> {
  try {
    return await asked
  } catch (error) {
    throw error instanceof ApiError ? error : redisUnavailable(error)
  }
}

/** Rejects with `outcome_unknown` if the answer to a change was lost: the change may have been made. */
export async function orUnknown<T>(change: Promise<T>): Promise<T> {
  try {
    return await change
  } catch (error) {
    throw mayHaveHappened(error) ? new ApiError('outcome_unknown', { cause: error, reason: 'database' }) : error
  }
}

export function redisUnavailable(cause?: unknown): ApiError {
  return new ApiError('unavailable', { cause, reason: 'redis', retryAfterS: 1 })
}

/** At most one error for each field with a format of ours: its message has the length. */
function fieldErrors(error: FastifyError): FieldError[] {
  const found = (error.validation ?? []).slice(0, FIELD_ERRORS_MAX)
  const formats = found.filter(({ params }) => isOurFormat(String(params.format)))
  const told = new Set<string>(formats.map(({ instancePath }) => instancePath))
  return found
    .filter((each) => formats.includes(each) || !told.has(each.instancePath))
    .map(({ instancePath, params, message = 'is not valid' }) => {
      const format = typeof params.format === 'string' ? params.format : ''
      const missing = typeof params.missingProperty === 'string' ? params.missingProperty : undefined
      const unknown = typeof params.additionalProperty === 'string' ? params.additionalProperty : undefined
      return {
        field: shown(missing ?? unknown ?? instancePath.slice(1).replaceAll('/', '.')) || 'body',
        message: missing === undefined ? (isOurFormat(format) ? formatMessages[format] : message) : 'is required',
      }
    })
}

/** Truncates a client's text, and replaces invisible characters (six bytes each in JSON). */
function shown(name: string): string {
  return name.slice(0, FIELD_NAME_MAX).replace(/\p{C}/gu, '\ufffd')
}

function isOurFormat(format: string): format is keyof typeof formatMessages {
  return Object.hasOwn(formatMessages, format)
}
