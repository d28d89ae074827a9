/**
 * Rules of HTTP/1.1 messages that Node's parser leaves to the server. Node itself would answer a request without Host, or with an unknown
 * expectation, past Fastify: without a problem, headers, log line or metric.
 */
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { ApiError } from '../problems/errors.js'

/** Needs `requireHostHeader: false` (see server-options.ts). */
export const messageRulesPlugin = fp(
  async (app: FastifyInstance) => {
    // RFC 9110, 10.1.1: an unknown expectation may be ignored.
    app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))
    app.addHook('onRequest', async ({ raw }, reply) => {
      if (isFramedTwice(raw)) reply.header('connection', 'close')
      else if (namesOneHost(raw)) return
      throw new ApiError('malformed_request')
    })
  },
  { name: 'message-rules' },
)

/** RFC 9112, 3.2: exactly one Host line; HTTP/1.0 needs none. */
function namesOneHost({ headersDistinct: { host = [] }, httpVersion }: IncomingMessage): boolean {
  return host.length === 1 || (host.length === 0 && httpVersion === '1.0')
}

/**
 * RFC 9112, 6.1: a body has one framing, and the connection of a request with two must be closed. Node's parser refuses both headers
 * together, except where Transfer-Encoding is empty.
 */
function isFramedTwice({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined && headers['content-length'] !== undefined
}
