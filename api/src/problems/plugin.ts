/** Every error as application/problem+json (RFC 9457): ours, and what toApiError makes of others. */
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { FromSchema } from 'json-schema-to-ts'
import type { ErrorCode } from '../schemas/problem-codes.js'
import type { ProblemBody } from '../schemas/responses.js'
import { answerHeaders } from './answer-headers.js'
import { ApiError, type RefusalReason } from './errors.js'
import { toApiError } from './foreign-errors.js'

/** Node's codes for what never becomes a request; anything else is not HTTP. */
const connectionCodes: Record<string, ErrorCode> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
}

export const problemType = { 'content-type': 'application/problem+json' } as const

export const problemPlugin = fp(
  async (app: FastifyInstance) => {
    app.setErrorHandler((error: FastifyError, request, reply) => {
      // The client left in the middle of its body: there is nobody to answer, and nothing failed.
      const unread = request.raw.readableAborted
      return sendProblem(unread ? new ApiError('malformed_request') : toApiError(error), request, reply)
    })
    const methodsByPath = new Map<string, string[]>()
    app.addHook('onRoute', ({ url, method }) => {
      methodsByPath.set(url, [...(methodsByPath.get(url) ?? []), method].flat())
    })
    app.setNotFoundHandler((request, reply) => {
      const [path = ''] = request.url.split('?')
      const methods = methodsByPath.get(path)
      // A route can say itself that it has not found what it was asked for.
      if (methods === undefined || methods.includes(request.method)) {
        return sendProblem(new ApiError('not_found'), request, reply)
      }
      reply.header('allow', methods.join(', '))
      return sendProblem(new ApiError('method_not_allowed'), request, reply)
    })
  },
  { name: 'problem' },
)

/** Answers with a problem. Also for errors that occur outside of any handler. */
export function sendProblem(error: ApiError, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  request.errorCode = error.code
  request.refusedFor = error.reason
  if (error.cause !== undefined) {
    // What a client gets wrong is of its making, as often as it likes.
    const level = error.status < 500 ? 'debug' : 'error'
    request.log[level]({ err: error.cause, code: error.code }, 'request failed')
  }
  if (error.retryAfterS !== undefined) reply.header('retry-after', error.retryAfterS)
  if (error.status === 401 && !reply.hasHeader('www-authenticate')) reply.header('www-authenticate', 'Bearer')
  return reply
    .code(error.status)
    .headers(answerHeaders)
    .headers(problemType)
    .serializer(JSON.stringify)
    .send(problemOf(error))
}

/** Answers on a connection that carries no readable request, and ends it. */
export function sendConnectionProblem({ code }: { code: string }, socket: Socket): void {
  const error = new ApiError(connectionCodes[code] ?? 'malformed_request')
  if (socket.writable) {
    const body = JSON.stringify(problemOf(error))
    const headers = { ...answerHeaders, ...problemType, 'content-length': body.length, connection: 'close' }
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    socket.write(`HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}\r\n${lines.join('')}\r\n${body}`)
  }
  socket.destroy()
}

/** What the client is told of an error. */
export function problemOf({ message, status, code, fields }: ApiError): FromSchema<typeof ProblemBody> {
  return { type: 'about:blank', title: message, status, code, ...(fields && { errors: fields }) }
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The code of the problem this request was answered with, for its log line. */
    errorCode?: ErrorCode
    /** The reason behind that code, for the counters. */
    refusedFor?: RefusalReason | undefined
  }
}
