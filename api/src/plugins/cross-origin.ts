/**
 * Lets pages of other origins use the API (CORS, Fetch Standard 3.2): only the origins of CORS_ORIGINS. Headers are set on Node's own
 * response, before load shedding and Fastify. @fastify/cors sets them in a hook, which requests that are refused earlier do not reach: a
 * page could not read the refusal or its Retry-After. Preflights are answered there too: they need neither a limit nor a place in the
 * queue.
 *
 * Credentials are allowed where sessions are cookies alone (SESSION_COOKIE): elsewhere tokens are sent in bodies and headers, and a page that
 * sends no cookies cannot be made to send someone else's.
 */
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { GatewayMetrics } from './metrics.js'
import { interceptRequests } from './server-options.js'

/** What pages may send and read beyond the headers that every page may. */
const METHODS = 'GET, HEAD, POST, PUT, DELETE'
const REQUEST_HEADERS = 'Authorization, Content-Type, Prefer, Spillway-Challenge, Spillway-Device, Traceparent'
const ANSWER_HEADERS =
  'Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Preference-Applied, WWW-Authenticate, Allow'
/** How long a browser keeps the answer to a preflight, in seconds: the most that Chromium does. */
const MAX_AGE_S = 7_200

const sendable = {
  'access-control-allow-methods': METHODS,
  'access-control-allow-headers': REQUEST_HEADERS,
  'access-control-max-age': String(MAX_AGE_S),
}

export interface CrossOriginOptions {
  /** Exact origins; without any, the API is closed to pages of other origins. */
  origins: readonly string[]
  /** Whether their pages may send and get cookies. */
  credentials: boolean
  metrics: Pick<GatewayMetrics, 'requests'>
}

export const crossOriginPlugin = fp(
  async (app: FastifyInstance, { origins, credentials, metrics }: CrossOriginOptions) => {
    if (origins.length === 0) return
    const allowed = new Set(origins)
    /** Of the request that a connection carries: a problem of the connection has no response to set headers on. */
    const bySocket = new WeakMap<Socket, OutgoingHttpHeaders>()

    interceptRequests(app, (request, response, next) => {
      const { origin = '' } = request.headers
      const headers: Record<string, string> = {
        vary: 'Origin',
        ...(allowed.has(origin) && readableBy(origin, credentials)),
      }
      bySocket.set(request.socket, headers)
      for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
      if (!isPreflight(request)) return next()
      metrics.requests.inc({ method: 'OPTIONS', route: 'preflight', status: 204, outcome: 'ok' })
      answerPreflight(response, { isAllowed: allowed.has(origin), isClosing: !app.server.listening })
    })
    app.decorate('connectionProblemHeaders', (socket: Socket) => bySocket.get(socket) ?? {})
  },
  { name: 'cross-origin' },
)

function readableBy(origin: string, credentials: boolean): Record<string, string> {
  return {
    ...(credentials ? { 'access-control-allow-credentials': 'true' } : {}),
    'access-control-allow-origin': origin,
    'access-control-expose-headers': ANSWER_HEADERS,
  }
}

/** A preflight has no body. With a body it is not a preflight, and Fastify answers it as any other request. */
function isPreflight({ method, headers }: IncomingMessage): boolean {
  return (
    method === 'OPTIONS' &&
    headers.origin !== undefined &&
    headers['access-control-request-method'] !== undefined &&
    headers['transfer-encoding'] === undefined &&
    Number(headers['content-length'] ?? 0) === 0
  )
}

function answerPreflight(response: ServerResponse, options: { isAllowed: boolean; isClosing: boolean }): void {
  const headers: OutgoingHttpHeaders = options.isAllowed ? { ...sendable } : {}
  if (options.isClosing) headers.connection = 'close'
  response.writeHead(204, headers).end()
}

declare module 'fastify' {
  interface FastifyInstance {
    /** Headers for the answer to a problem of a connection; empty unless the API is open to other origins. */
    connectionProblemHeaders?(socket: Socket): OutgoingHttpHeaders
  }
}
