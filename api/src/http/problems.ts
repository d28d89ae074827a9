/** Answers every error as application/problem+json (RFC 9457). */
import { METHODS, type OutgoingHttpHeaders, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { ThrottledWarning } from '@spillway/common/throttled-warning'
import { databaseProblem, isDatabaseUnavailable } from '@spillway/prisma'
import { newId } from '@spillway/queue/wire/id'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import createRouter, { type HTTPMethod } from 'find-my-way'
import type { FromSchema } from 'json-schema-to-ts'
import type { ErrorCode } from '../schemas/problem-codes.js'
import type { ProblemBody } from '../schemas/responses.js'
import { ApiError, type RefusalReason, toApiError } from './errors.js'
import { REQUEST_ID_HEADER, toldId } from './request-id.js'

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
