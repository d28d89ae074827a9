/**
 * Lets pages of CORS_ORIGINS use the API (Fetch Standard 3.2). Headers are set on Node's own
 * response, before load shedding and Fastify: with @fastify/cors, which sets them in a hook, a page
 * could not read an early refusal. Preflights are answered there too, without a limit or a place in
 * the queue. Credentials are allowed where sessions are cookies (SESSION_COOKIE).
 */
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { GatewayMetrics } from './metrics.js'
import { REQUEST_ID_HEADER } from './problems.js'
import { interceptRequests } from './server-options.js'

/** What pages may send and read beyond the headers that every page may. */
const METHODS = 'GET, HEAD, POST, PUT, DELETE'
const REQUEST_HEADERS = 'Authorization, Content-Type, Prefer, Spillway-Challenge, Spillway-Device'
/**
 * What monitoring adds to every request of a page (W3C Trace Context and Baggage, Sentry, Datadog,
 * New Relic, Elastic, Zipkin). A header that is not allowed fails the request. The gateway reads
 * `traceparent` alone, where it exports traces.
 */
const TRACE_HEADERS =
  'Traceparent, Tracestate, Baggage, Sentry-Trace, X-Datadog-Origin, X-Datadog-Parent-Id, X-Datadog-Sampling-Priority, X-Datadog-Tags, X-Datadog-Trace-Id, Newrelic, Elastic-Apm-Traceparent, B3, X-B3-TraceId, X-B3-SpanId, X-B3-ParentSpanId, X-B3-Sampled'
const ANSWER_HEADERS =
  'Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Preference-Applied, WWW-Authenticate, Allow, X-Request-Id'
/** How long a browser keeps the answer to a preflight, in seconds: the most that Chromium does. */
const MAX_AGE_S = 7_200

const sendable = {
  'access-control-allow-methods': METHODS,
  'access-control-allow-headers': `${REQUEST_HEADERS}, ${TRACE_HEADERS}`,
  'access-control-max-age': String(MAX_AGE_S),
}

const FIRST_LABEL = /^(https?:\/\/)[a-z0-9_-]+\./

interface CrossOriginOptions {
  /** CORS_ORIGINS, with `*` for a first label; without any, the API is closed to other origins. */
  origins: readonly string[]
  credentials: boolean
  metrics: Pick<GatewayMetrics, 'requests'>
}

export const crossOriginPlugin = fp(
  async (app: FastifyInstance, { origins, credentials, metrics }: CrossOriginOptions) => {
    if (origins.length === 0) return
    const allowed = new Set(origins)
    /** Of the request that a connection carries: a problem of the connection has no response. */
    const bySocket = new WeakMap<Socket, OutgoingHttpHeaders>()

    interceptRequests(app, (request, response, next) => {
      const { origin = '' } = request.headers
      const isAllowed = allowed.has(origin) || allowed.has(origin.replace(FIRST_LABEL, '$1*.'))
      const readable = { 'access-control-allow-origin': origin, 'access-control-expose-headers': ANSWER_HEADERS }
      const headers: Record<string, string> = {
        ...(isAllowed && credentials ? { 'access-control-allow-credentials': 'true' } : {}),
        ...(isAllowed ? readable : {}),
        vary: 'Origin',
      }
      bySocket.set(request.socket, headers)
      for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
      if (!isPreflight(request)) return next()
      metrics.requests.inc({ method: 'OPTIONS', route: 'preflight', status: 204, outcome: 'ok' })
      const id = { [REQUEST_ID_HEADER]: request.headers[REQUEST_ID_HEADER] }
      const closing = app.server.listening ? {} : { connection: 'close' }
      response.writeHead(204, { ...(isAllowed ? sendable : {}), ...id, ...closing }).end()
    })
    app.decorate('connectionProblemHeaders', (socket: Socket) => bySocket.get(socket) ?? {})
  },
  { name: 'cross-origin' },
)

/** With a body it is not a preflight, and Fastify answers it as any other request. */
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

/** By Fetch Metadata, else by Origin, which no script can set; `unknown` from no browser. */
export function siteOf({ headers }: FastifyRequest): 'own' | 'other' | 'unknown' {
  const { 'sec-fetch-site': site, origin, host } = headers
  if (site !== undefined) return site === 'same-origin' ? 'own' : 'other'
  if (origin === undefined) return 'unknown'
  return origin === `https://${host}` || origin === `http://${host}` ? 'own' : 'other'
}

declare module 'fastify' {
  interface FastifyInstance {
    /** Headers for a problem of a connection; empty unless the API is open to other origins. */
    connectionProblemHeaders?(socket: Socket): OutgoingHttpHeaders
  }
}
