/**
 * What the client may know of errors that are not ours: those of Fastify and its plugins, of validation, and of the parts behind
 * the gateway. What is not meant for it becomes `internal_error` or `unavailable`, with the error as the cause.
 */

import { PasswordClientError } from '@spillway/client'
import { isDatabaseUnavailable } from '@spillway/prisma'
import type { FastifyError } from 'fastify'
import { formatMessages } from '../schemas/credentials.js'
import type { ErrorCode } from '../schemas/problem-codes.js'
import { ApiError, type FieldError } from './errors.js'

/** Fastify's codes for requests that are wrong before a handler sees them. */
const fastifyCodes: Record<string, ErrorCode> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_CTP_BODY_TOO_LARGE: 'body_too_large',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'malformed_request',
  FST_ERR_CTP_INVALID_JSON_BODY: 'malformed_request',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'malformed_request',
  FST_ERR_BAD_URL: 'malformed_request',
  FST_BASIC_AUTH_MISSING_OR_BAD_AUTHORIZATION_HEADER: 'operators_only',
}

/** What plugins refuse by a status alone, as the one that serves the files of /docs; any other one is `malformed_request`. */
const codesByStatus: Record<number, ErrorCode> = {
  403: 'forbidden',
  404: 'not_found',
  412: 'precondition_failed',
  416: 'range_not_satisfiable',
}

/**
 * What an answer says of a request that is not valid, however much is wrong with it: so many errors, and so much of each name, in
 * UTF-16 units. Together with the rest no more than 2,048 bytes: a client must not draw more from here than it sends.
 */
const FIELD_ERRORS_MAX = 10
const FIELD_NAME_MAX = 40

/** Any error as one of ours; it is the same where it is one already. */
export function toApiError(error: FastifyError): ApiError {
  if (error instanceof ApiError) return error
  if (error.validation !== undefined) return new ApiError('invalid_request', { fields: fieldErrors(error) })
  const known = fastifyCodes[error.code]
  if (known !== undefined) return new ApiError(known)
  if (error.code?.startsWith('FST_JWT') || error.code?.startsWith('FAST_JWT')) return new ApiError('invalid_token')
  // Nobody is there to be answered, and nothing failed.
  if (error instanceof PasswordClientError && error.code === 'wait_aborted') return new ApiError('unavailable')
  if (error instanceof PasswordClientError && error.code === 'held_too_often') {
    return new ApiError('too_many_requests', { reason: 'ticket_held', retryAfterS: 1 })
  }
  if (error instanceof PasswordClientError || isDatabaseUnavailable(error)) {
    return new ApiError('unavailable', { cause: error, retryAfterS: 1 })
  }
  const { statusCode = 500 } = error
  if (statusCode >= 400 && statusCode < 500) return new ApiError(codesByStatus[statusCode] ?? 'malformed_request')
  return new ApiError('internal_error', { cause: error })
}

/** One for each field: what a format of ours says about it tells more than a length does. */
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

/** The beginning of a name that a client chose, without what cannot be seen: JSON writes that in six bytes each. */
function shown(name: string): string {
  return name.slice(0, FIELD_NAME_MAX).replace(/\p{C}/gu, '\ufffd')
}

function isOurFormat(format: string): format is keyof typeof formatMessages {
  return Object.hasOwn(formatMessages, format)
}
