/**
 * Accepts bodies of JSON in UTF-8 alone (RFC 8259, 8.1), without a content coding. Fastify's own parser replaces invalid bytes by U+FFFD and
 * ignores the charset: different passwords in another encoding would become the same password. An empty body is none for a call that needs none,
 * whatever its media type: browsers and HTTP clients send one on their own.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { ApiError } from '../problems/errors.js'

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
      // Where there is no such call, the answer is 404 or 405, whatever the body.
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

/** Whether a media type has no charset, or UTF-8 once. JSON defines no such parameter, but some clients send it. */
function isUtf8(mediaType = ''): boolean {
  const charsets = mediaType
    .split(';')
    .slice(1)
    .filter((parameter) => /charset/i.test(parameter))
  return charsets.length <= 1 && charsets.every((charset) => /^\s*charset=("utf-8"|utf-8)\s*$/i.test(charset))
}
