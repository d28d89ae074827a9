/** Rules of HTTP/1.1 messages that Node's parser does not check, or answers without Fastify. */
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { ErrorCode } from './problems.js'
import { ApiError } from './problems.js'

const HOST = 'host'
/** Control characters (U+0000 to U+001F, U+007F to U+009F), encoded. PostgreSQL stores no U+0000. */
const ENCODED_CONTROL = /%(?:[01][\da-f]|7f|c2%[89][\da-f])/i

/** Needs `requireHostHeader: false` (see serverOptions). */
export const messageRulesPlugin = fp(
  async (app: FastifyInstance) => {
    // RFC 9110, 10.1.1: an unknown expectation may be ignored.
    app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))
    app.addHook('onRequest', ({ raw }, reply, next) => {
      const problem = problemOf(raw)
      if (problem === undefined) return next()
      if (raw.headers['transfer-encoding'] !== undefined) reply.header('connection', 'close')
      next(new ApiError(problem))
    })
  },
  { name: 'message-rules' },
)

function problemOf(request: IncomingMessage): ErrorCode | undefined {
  if (isFramedTwice(request) || !namesOneHost(request) || ENCODED_CONTROL.test(request.url ?? ''))
    return 'malformed_request'
  if (!isChunkedAtMost(request)) return 'unsupported_media_type'
  return undefined
}

/**
 * RFC 9112, 6.1 and 7: Node decodes only `chunked`, and no compression. The RFC prefers 501, which
 * would count as a failure of the gateway, and any client can cause it.
 */
function isChunkedAtMost({ headers: { 'transfer-encoding': coding = 'chunked' } }: IncomingMessage): boolean {
  return /^\s*chunked\s*$/i.test(coding)
}

/** RFC 9112, 3.2: exactly one Host line. HTTP/1.0 needs no Host line. */
function namesOneHost({ rawHeaders, httpVersion }: IncomingMessage): boolean {
  // Names and values alternate. `headersDistinct` would create an object for every request.
  let hosts = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]
    if (name?.length === HOST.length && name.toLowerCase() === HOST) hosts += 1
  }
  return hosts === 1 || (hosts === 0 && httpVersion === '1.0')
}

/**
 * RFC 9112, 6.1: a body has one framing. Node's parser refuses two framings unless
 * Transfer-Encoding is empty. HTTP/1.0 has no Transfer-Encoding.
 */
function isFramedTwice({ headers, httpVersion }: IncomingMessage): boolean {
  return (
    headers['transfer-encoding'] !== undefined && (headers['content-length'] !== undefined || httpVersion === '1.0')
  )
}

// Accepts only JSON in UTF-8 (RFC 8259, 8.1) without a content coding. Fastify's parser replaces
// invalid bytes by U+FFFD, which would make different passwords equal. If a call needs no body, an
// empty body of any media type is accepted: some clients send a media type by default.

// The JSON parser skips one byte order mark; a second one is invalid JSON.
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export const jsonBodyPlugin = fp(
  async (app: FastifyInstance) => {
    const parseJson = app.getDefaultJsonParser('error', 'error')
    app.removeAllContentTypeParsers()
    app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, bytes: Buffer, done) => {
      if (bytes.length === 0 && needsNoBody(request)) return done(null)
      const { headers } = request
      if (!isUtf8(headers['content-type']) || isCoded(headers['content-encoding']))
        return done(new ApiError('unsupported_media_type'))
      let text: string
      try {
        text = decoder.decode(bytes)
      } catch {
        return done(new ApiError('malformed_request'))
      }
      return parseJson(request, text, done)
    })
    app.addContentTypeParser('*', (request, _body, done) => {
      const { 'content-length': length, 'transfer-encoding': coding } = request.headers
      const isEmpty = coding === undefined && (length === undefined || Number(length) === 0)
      // Without such a route, the answer is 404 or 405 for any body.
      const isUnread = request.is404 || (isEmpty && needsNoBody(request))
      done(isUnread ? null : new ApiError('unsupported_media_type'))
    })
  },
  { name: 'json-body' },
)

function needsNoBody({ routeOptions: { schema } }: FastifyRequest): boolean {
  return schema !== undefined && schema.body === undefined
}

/** RFC 9110, 8.4 and 15.5.16. */
function isCoded(contentEncoding = ''): boolean {
  return !/^\s*(identity\s*)?$/i.test(contentEncoding)
}

/** Whether a media type has no charset, or UTF-8 once, as some clients send it. */
function isUtf8(mediaType = ''): boolean {
  const charsets = mediaType
    .split(';')
    .slice(1)
    .filter((parameter) => /charset/i.test(parameter))
  return charsets.length <= 1 && charsets.every((charset) => /^\s*charset=("utf-8"|utf-8)\s*$/i.test(charset))
}
