/**
 * Lets pages of CORS_ORIGINS use the API (Fetch Standard 3.2). It is registered before the plugins
 * that refuse requests, so that a page can read a refusal. Preflights are answered here, without a
 * limit. Credentials are allowed if SESSION_COOKIE is on.
 */
import type { IncomingMessage } from 'node:http'
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

/** The pages of other origins that may use the API, and the headers that allow it. */
export class CrossOrigin {
  readonly #allowed: ReadonlySet<string>
  readonly #credentials: Record<string, string>
  /** By connection: a problem of a connection has no request. */
  readonly #last = new WeakMap<Socket, Record<string, string>>()

  /** @param origins CORS_ORIGINS, with `*` as a first label */
  constructor(origins: readonly string[], credentials: boolean) {
    this.#allowed = new Set(origins)
    this.#credentials = credentials ? { 'access-control-allow-credentials': 'true' } : {}
  }

  isAllowed(origin: string): boolean {
    return this.#allowed.has(origin) || this.#allowed.has(origin.replace(FIRST_LABEL, '$1*.'))
  }

  headersFor({ socket, headers: { origin = '' } }: IncomingMessage): Record<string, string> {
    const allowing = {
      ...this.#credentials,
      'access-control-allow-origin': origin,
      'access-control-expose-headers': ANSWER_HEADERS,
    }
    const headers = { ...(this.isAllowed(origin) && allowing), vary: 'Origin' }
    this.#last.set(socket, headers)
    return headers
  }

  /** The headers for the last request on a connection. */
  lastHeadersOn(socket: Socket): Record<string, string> {
    return this.#last.get(socket) ?? {}
  }
}

export const crossOriginPlugin = fp(
  async (app: FastifyInstance, { crossOrigin }: { crossOrigin: CrossOrigin }) => {
    app.addHook('onRequest', ({ raw }, reply, next) => {
      reply.headers(crossOrigin.headersFor(raw))
      if (!isPreflight(raw)) return next()
      reply.headers(crossOrigin.isAllowed(raw.headers.origin ?? '') ? sendable : {})
      void reply.code(204).send()
    })
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
