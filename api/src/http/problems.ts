/**
 * Problems (RFC 9457): each code has one status and one public sentence. What fails in a request
 * becomes an {@link ApiError}, and every error is answered as application/problem+json.
 */
import { METHODS, type OutgoingHttpHeaders, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { ThrottledWarning } from '@spillway/common/throttled-warning'
import { databaseProblem, isDatabaseUnavailable, mayHaveHappened } from '@spillway/prisma'
import { PasswordClientError } from '@spillway/queue/client'
import { StacklessError } from '@spillway/queue/errors'
import { newId } from '@spillway/queue/wire/id'
import { objectOf } from '@spillway/queue/wire/object-schema'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import createRouter, { type HTTPMethod } from 'find-my-way'
import type { FromSchema } from 'json-schema-to-ts'
import { formatMessages } from '../schemas/credentials.js'
import { REQUEST_ID_HEADER, toldId } from './requests.js'

/** Each code with its status and its public `detail`. */
export const problems = {
  malformed_request: { status: 400, detail: 'The request cannot be read' },
  invalid_ticket: { status: 400, detail: 'The ticket was not issued by this service' },
  invalid_mail_token: { status: 400, detail: 'The link is invalid, expired or used' },
  invalid_credentials: { status: 401, detail: 'The e-mail address or the password is wrong' },
  invalid_token: { status: 401, detail: 'The access token is missing, invalid or expired' },
  invalid_refresh_token: { status: 401, detail: 'The refresh token is invalid, expired or used' },
  invalid_service_key: { status: 401, detail: 'The service key is missing or unknown' },
  operators_only: { status: 401, detail: 'An operator must log in' },
  other_site: { status: 403, detail: 'Requests from other sites, or with another host name, are refused' },
  registration_closed: { status: 403, detail: 'Registration is closed' },
  mail_off: { status: 403, detail: 'This service sends no mail' },
  network_blocked: { status: 403, detail: 'Requests from this network are refused' },
  forbidden: { status: 403, detail: 'This resource is not public' },
  role_required: { status: 403, detail: 'The role of this operator does not allow this' },
  account_not_found: { status: 404, detail: 'There is no such account' },
  job_not_found: { status: 404, detail: 'The queue has no job of this request' },
  session_not_found: { status: 404, detail: 'The account does not have this session' },
  not_found: { status: 404, detail: 'No resource has this path' },
  method_not_allowed: { status: 405, detail: 'This path does not accept this method' },
  request_timeout: { status: 408, detail: 'The request did not arrive in time' },
  email_taken: { status: 409, detail: 'An account with this e-mail address already exists' },
  account_is_disabled: { status: 409, detail: 'The account is disabled: enable it first' },
  ticket_used: { status: 409, detail: 'The ticket has already been redeemed' },
  ticket_expired: { status: 410, detail: 'The ticket has expired' },
  precondition_failed: { status: 412, detail: "The resource does not meet the request's condition" },
  body_too_large: { status: 413, detail: 'The body is too large' },
  unsupported_media_type: { status: 415, detail: 'The body must be uncompressed application/json in UTF-8' },
  range_not_satisfiable: { status: 416, detail: 'The requested range is outside the resource' },
  invalid_request: { status: 422, detail: 'The request is not valid' },
  unsupported_hash: { status: 422, detail: 'No worker supports the format or cost of the stored hash' },
  too_many_mails: { status: 429, detail: 'The address got too many mails within the hour' },
  too_many_requests: { status: 429, detail: 'A rate limit is exceeded' },
  headers_too_large: { status: 431, detail: 'The headers are too large' },
  internal_error: { status: 500, detail: 'The service could not answer because of an internal error' },
  busy: { status: 503, detail: 'Too many requests are waiting; try again later' },
  outcome_unknown: { status: 503, detail: 'It may have been done: the answer of the database was lost' },
  unavailable: { status: 503, detail: 'A part of the service is not reachable; try again later' },
} as const

export type ErrorCode = keyof typeof problems
export const errorCodes = Object.keys(problems)

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

// The answer.

export const ProblemBody = {
  title: 'Problem',
  description: 'The reason why a request failed (RFC 9457)',
  ...objectOf(
    {
      type: { const: 'about:blank' },
      title: { type: 'string', description: 'The reason phrase of the status (RFC 9110)' },
      status: { type: 'integer', minimum: 400, maximum: 599 },
      code: { type: 'string', enum: errorCodes },
      detail: { type: 'string', description: 'One sentence for people; the same for every problem with this code' },
      requestId: { type: 'string', description: 'The value of X-Request-Id. Users can give it to support' },
    },
    {
      errors: {
        type: 'array',
        items: {
          title: 'FieldError',
          ...objectOf({ field: { type: 'string' }, message: { type: 'string' } }, { code: { type: 'string' } }),
        },
      },
    },
  ),
  examples: [
    {
      type: 'about:blank',
      title: 'Unprocessable Content',
      status: 422,
      code: 'invalid_request',
      detail: 'The request is not valid',
      requestId: '019a7f3e-5c1b-7d0a-9b1e-2f60c8a1d4e7',
      errors: [{ field: 'email', message: 'must be an e-mail address' }],
    },
  ],
} as const

/** Node's codes for connections whose bytes never become a request. Any other code is not HTTP. */
const connectionCodes: Record<string, ErrorCode> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
}

export const problemType = { 'content-type': 'application/problem+json' } as const

export const problemPlugin = fp(
  async (app: FastifyInstance) => {
    app.setErrorHandler((error: FastifyError, request, reply) => {
      // The client disconnected while it sent the body. This is no failure of the gateway.
      const unread = request.raw.readableAborted
      sendProblem(unread ? new ApiError('malformed_request') : toApiError(error), request, reply)
    })
    const database = new ThrottledWarning(app.log, 'requests fail: the database cannot be used')
    const queue = new ThrottledWarning(app.log, 'requests fail: the queue cannot be used')
    app.decorate('warnOfFailing', (cause) => {
      if (isDatabaseUnavailable(cause)) database.warn(new Error(databaseProblem(cause)))
      else if (cause !== undefined) queue.warn(rootOf(cause))
    })
    // Fastify's router finds only routes of the method of a request.
    const routes = createRouter()
    const known = new Set<HTTPMethod>()
    app.addHook('onRoute', ({ url, method: methods }) => {
      for (const method of [methods].flat().filter(isMethod)) {
        routes.on(method, url, () => undefined)
        known.add(method)
      }
    })
    app.setNotFoundHandler((request, reply) => {
      const [path = ''] = request.url.split('?')
      const methods: string[] = [...known].filter((method) => routes.find(method, path) !== null)
      // If the path accepts this method, its handler called `callNotFound`.
      const isFound = methods.length > 0 && !methods.includes(request.method)
      if (isFound) reply.header('allow', methods.join(', '))
      sendProblem(new ApiError(isFound ? 'method_not_allowed' : 'not_found'), request, reply)
    })
  },
  { name: 'problem' },
)

const isMethod = (method: string): method is HTTPMethod => METHODS.includes(method)

function rootOf(error: unknown): unknown {
  return error instanceof Error && error.cause !== undefined ? rootOf(error.cause) : error
}

/** Returns nothing: for a returned reply, Fastify would wait with listeners for its events. */
export function sendProblem(error: ApiError, request: FastifyRequest, reply: FastifyReply): void {
  request.errorCode = error.code
  request.refusedFor = error.reason
  if (error.code === 'unavailable') request.server.warnOfFailing(error.cause)
  else if (error.cause !== undefined) {
    // A client can cause 4xx errors at any rate, and would flood the log with errors.
    const level = error.status < 500 ? 'debug' : 'error'
    request.log[level]({ err: error.cause, code: error.code }, 'request failed')
  }
  if (error.retryAfterS !== undefined) reply.header('retry-after', error.retryAfterS)
  if (error.status === 401 && !reply.hasHeader('www-authenticate')) reply.header('www-authenticate', 'Bearer')
  const requestId = toldId(request)
  const problem = problemOf(error, requestId)
  // Set here too, because Fastify sends some errors without hooks.
  reply.header(REQUEST_ID_HEADER, requestId)
  reply.code(error.status).headers(answerHeaders).headers(problemType).serializer(JSON.stringify).send(problem)
}

/** @param code Node's code of a connection without a readable request */
export function connectionProblem(code: string): ApiError {
  return new ApiError(connectionCodes[code] ?? 'malformed_request')
}

/** Answers on a connection without a readable request, and closes it. */
export function sendConnectionProblem(
  error: ApiError,
  socket: Socket,
  { requestId = newId(), further = {} }: { requestId?: string; further?: OutgoingHttpHeaders | undefined } = {},
): void {
  if (socket.writable) {
    const body = JSON.stringify(problemOf(error, requestId))
    const own = { [REQUEST_ID_HEADER]: requestId, 'content-length': body.length, connection: 'close' }
    const headers = { ...further, ...answerHeaders, ...problemType, ...own }
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    socket.write(`HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}\r\n${lines.join('')}\r\n${body}`)
  }
  socket.destroy()
}

/** RFC 9457, 4.2.1: the title is the status phrase. Node's for 413 and 422 predate RFC 9110. */
const statusPhrases: Record<number, string | undefined> = {
  ...STATUS_CODES,
  413: 'Content Too Large',
  422: 'Unprocessable Content',
}

export function problemOf(
  { message, status, code, fields }: ApiError,
  requestId: string,
): FromSchema<typeof ProblemBody> {
  const title = statusPhrases[status] ?? ''
  return {
    ...{ type: 'about:blank', title, status, code, detail: message, requestId },
    ...(fields && { errors: fields }),
  }
}

declare module 'fastify' {
  interface FastifyInstance {
    /** Logs why requests cannot be answered, at intervals and not for each request. */
    warnOfFailing(cause: unknown): void
  }

  interface FastifyRequest {
    errorCode?: ErrorCode
    refusedFor?: RefusalReason | undefined
  }
}

// Headers of every public answer: no caching (RFC 6749, 5.1), no MIME sniffing. They are set first,
// so that cacheable routes can override them.

export const answerHeaders = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' } as const

export const answerHeadersPlugin = fp(
  async (app: FastifyInstance) => {
    app.addHook('onRequest', (_request, reply, next) => {
      reply.headers(answerHeaders)
      next()
    })
  },
  { name: 'answer-headers' },
)
