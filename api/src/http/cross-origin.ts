/**
 * Lets pages of CORS_ORIGINS use the API (Fetch Standard 3.2). It is registered before the plugins
 * that refuse requests, so that a page can read a refusal. Preflights are answered here, without a
 * limit. Credentials are allowed if SESSION_COOKIE is on.
 */
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'

/** What pages may send and read beyond the headers that are always allowed. */
const METHODS = 'GET, HEAD, POST, PUT, DELETE'
const REQUEST_HEADERS = 'Authorization, Content-Type, Prefer, Spillway-Device'
/**
 * Headers that monitoring adds to every request of a page (W3C Trace Context and Baggage, Sentry,
 * Datadog, New Relic, Elastic, Zipkin). A header that is not allowed fails the request. The gateway
 * reads only `traceparent`, and only if it exports traces.
 */
const TRACE_HEADERS =
  'Traceparent, Tracestate, Baggage, Sentry-Trace, X-Datadog-Origin, X-Datadog-Parent-Id, X-Datadog-Sampling-Priority, X-Datadog-Tags, X-Datadog-Trace-Id, Newrelic, Elastic-Apm-Traceparent, B3, X-B3-TraceId, X-B3-SpanId, X-B3-ParentSpanId, X-B3-Sampled'
const ANSWER_HEADERS =
  'Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Preference-Applied, WWW-Authenticate, Allow, X-Request-Id'
/** How long a browser keeps the answer to a preflight, in seconds: the maximum of Chromium. */
const MAX_AGE_S = 7_200

const sendable = {
  'access-control-allow-methods': METHODS,
  'access-control-allow-headers': `${REQUEST_HEADERS}, ${TRACE_HEADERS}`,
  'access-control-max-age': String(MAX_AGE_S),
}

const FIRST_LABEL = /^(https?:\/\/)[a-z0-9_-]+\./

export interface CrossOriginOptions {
  /** CORS_ORIGINS, with `*` as a first label. If empty, the API is closed to other origins. */
  origins: readonly string[]
  credentials: boolean
}

export const crossOriginPlugin = fp(
  async (app: FastifyInstance, { origins, credentials }: CrossOriginOptions) => {
    if (origins.length === 0) return
    const allowed = new Set(origins)
    /** The headers of the request on a connection: a problem of a connection has no response. */
    const bySocket = new WeakMap<Socket, OutgoingHttpHeaders>()

    const isAllowed = (origin: string) => allowed.has(origin) || allowed.has(origin.replace(FIRST_LABEL, '$1*.'))
    app.decorate('crossOriginHeaders', ({ headers: { origin = '' } }) => {
      if (!isAllowed(origin)) return { vary: 'Origin' }
      return {
        ...(credentials ? { 'access-control-allow-credentials': 'true' } : {}),
        'access-control-allow-origin': origin,
        'access-control-expose-headers': ANSWER_HEADERS,
        vary: 'Origin',
      }
    })
    app.addHook('onRequest', (request, reply, next) => {
      const headers = app.crossOriginHeaders?.(request.raw) ?? {}
      bySocket.set(request.raw.socket, headers)
      reply.headers(headers)
      if (!isPreflight(request.raw)) return next()
      const isSendable = isAllowed(request.headers.origin ?? '')
      reply.headers(isSendable ? sendable : {})
      void reply.code(204).send()
    })
    app.decorate('connectionProblemHeaders', (socket: Socket) => bySocket.get(socket) ?? {})
  },
  { name: 'cross-origin' },
)

/** With a body it is no preflight, and Fastify answers it like any other request. */
function isPreflight({ method, headers }: IncomingMessage): boolean {
  return (
    method === 'OPTIONS' &&
    headers.origin !== undefined &&
    headers['access-control-request-method'] !== undefined &&
    headers['transfer-encoding'] === undefined &&
    Number(headers['content-length'] ?? 0) === 0
  )
}

const SAFE_METHODS = ['GET', 'HEAD', 'OPTIONS']

/** Whether a request may change something. */
export function isUnsafe({ method }: FastifyRequest): boolean {
  return !SAFE_METHODS.includes(method)
}

/** By Fetch Metadata, or by Origin, which no script can set; `unknown` if neither is sent. */
export function siteOf({ headers }: FastifyRequest): 'own' | 'other' | 'unknown' {
  const { 'sec-fetch-site': site, origin, host } = headers
  if (site !== undefined) return site === 'same-origin' ? 'own' : 'other'
  if (origin === undefined) return 'unknown'
  return origin === `https://${host}` || origin === `http://${host}` ? 'own' : 'other'
}

declare module 'fastify' {
  interface FastifyInstance {
    /** Headers of an answer that runs no hooks. */
    crossOriginHeaders?(request: IncomingMessage): Record<string, string>
    /** Headers of a problem of a connection; empty unless the API is open to other origins. */
    connectionProblemHeaders?(socket: Socket): OutgoingHttpHeaders
  }
}
