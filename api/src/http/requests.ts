/**
 * What every request has: an id, a signal that its client is gone, a line in the log, its counts, with
 * a collector a trace, and the network of its client.
 */
import type { IncomingMessage } from 'node:http'
import { BlockList, isIP, type Socket, SocketAddress } from 'node:net'
import type { Context } from '@opentelemetry/api'
import { newId } from '@spillway/queue/wire/id'
import { REQUEST_ID } from '@spillway/queue/wire/job'
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { GatewayMetrics, TicketEvent } from '../ops/metrics.js'
import type { ApiError, ErrorCode } from './problems.js'

// The id of a request is in its answer, log lines, job, audit event and ticket. A proxy of
// TRUST_PROXY may choose it; any other request gets a new UUID. The redemption of a ticket answers
// with the id of the request that got the ticket, so a login has one id.

/** In lower case, as Node names it. */
export const REQUEST_ID_HEADER = 'x-request-id'
const isRequestId = new RegExp(REQUEST_ID)

/** Chooses the id of a request, as Fastify's `genReqId`. */
export function requestIds(proxies: AddressRanges): (request: IncomingMessage) => string {
  return ({ headers, socket }) => {
    const given = headers[REQUEST_ID_HEADER]
    const isOurForm = typeof given === 'string' && isRequestId.test(given)
    return isOurForm && proxies.has(socket.remoteAddress ?? '') ? given : newId()
  }
}

/** Answers that run no hooks set the header themselves. */
export const requestIdPlugin = fp(
  async (app: FastifyInstance) => {
    app.decorateRequest('firstId')
    app.addHook('onRequest', (request, reply, next) => {
      reply.header(REQUEST_ID_HEADER, request.id)
      next()
    })
  },
  { name: 'request-id' },
)

/** The id in the answer and in the audit. */
export function toldId({ id, firstId = id }: FastifyRequest): string {
  return firstId
}

export function redeemAs(firstId: string, request: FastifyRequest, reply: FastifyReply): void {
  request.firstId = firstId
  reply.header(REQUEST_ID_HEADER, firstId)
}

type ClientGoneListener = (request: FastifyRequest, reply: FastifyReply) => void

/**
 * Detects clients that disconnect before their answers. With pipelining, only the first response
 * emits `close`, because it owns the connection. So one listener for each connection notifies all
 * its requests.
 */
export const clientGonePlugin = fp(
  async (app: FastifyInstance) => {
    const inHand = new WeakMap<Socket, Map<FastifyRequest, FastifyReply>>()
    const controllers = new WeakMap<FastifyRequest, AbortController>()
    const listeners: ClientGoneListener[] = []

    /** Created on demand: most requests are answered without it. */
    function controllerOf(request: FastifyRequest): AbortController {
      const controller = controllers.get(request) ?? new AbortController()
      controllers.set(request, controller)
      return controller
    }

    function track(socket: Socket): Map<FastifyRequest, FastifyReply> {
      const requests = new Map<FastifyRequest, FastifyReply>()
      inHand.set(socket, requests)
      socket.once('close', () => {
        for (const [request, reply] of requests) {
          for (const listener of listeners) listener(request, reply)
          controllerOf(request).abort()
        }
      })
      return requests
    }

    app.addHook('onRequest', (request, reply, next) => {
      const { socket } = request.raw
      const requests = inHand.get(socket) ?? track(socket)
      requests.set(request, reply)
      next()
    })
    app.addHook('onResponse', (request, _reply, next) => {
      inHand.get(request.raw.socket)?.delete(request)
      next()
    })
    app.decorate('requestsOn', (socket) => [...(inHand.get(socket)?.keys() ?? [])])
    app.decorate('onClientGone', (listener) => listeners.push(listener))
    app.decorateRequest('clientGone', {
      getter() {
        return controllerOf(this).signal
      },
    })
  },
  { name: 'client-gone' },
)

// One line in the log for each request, without bodies, headers or addresses, and its counts by
// route and outcome. The worker logs the same id. Requests whose client disconnected count, too.

const CLIENT_GONE = 499

/** Problems of redemptions. Any other answer below 500 to a ticket means `redeemed`. */
const ticketProblems: Partial<Record<ErrorCode, TicketEvent>> = {
  ticket_expired: 'expired',
  ticket_used: 'used',
  invalid_ticket: 'invalid',
}
const REDEEM_ROUTE = '/v1/tickets/redeem'

export const requestLogPlugin = fp(
  async (app: FastifyInstance, { metrics }: { metrics: GatewayMetrics }) => {
    app.onClientGone((request) => {
      const { method, service, jobId, firstId, log } = request
      log.info({ method, route: routeOf(request), service, jobId, firstId }, 'client gone')
      count(metrics, request, 'client_gone', CLIENT_GONE)
    })
    app.addHook('onResponse', (request, reply, next) => {
      const { method, service, jobId, firstId, errorCode: code, refusedFor: reason, log } = request
      const { statusCode: status, elapsedTime } = reply
      const route = routeOf(request)
      const ms = Math.round(elapsedTime * 10) / 10
      log.info({ method, route, service, status, code, jobId, firstId, ms }, 'request')
      count(metrics, request, outcomeOf(request, reply), status)
      metrics.requestDuration.observe({ method, route }, elapsedTime / 1_000)
      if (reason !== undefined) metrics.refused.inc({ reason })
      const event = ticketEventOf(request, reply)
      if (event !== undefined) metrics.tickets.inc({ event })
      if (event === 'invalid') metrics.sealFailures.inc({ purpose: 'ticket' })
      next()
    })
  },
  { name: 'request-log', dependencies: ['request-id', 'client-gone'] },
)

function count(metrics: GatewayMetrics, request: FastifyRequest, outcome: string, status: number): void {
  metrics.requests.inc({ method: request.method, route: routeOf(request), status, outcome })
}

interface Unrouted {
  log: FastifyBaseLogger
  metrics: GatewayMetrics
  /** Undefined if the bytes are not a request. */
  method?: string
}

/** Logs and counts an answer that runs no hooks. Of the client's input it logs only the method. */
export function noteUnrouted({ status, code }: ApiError, { log, metrics, method = 'none' }: Unrouted): void {
  log.info({ method, route: 'none', status, code }, 'request')
  metrics.requests.inc({ method, route: 'none', status, outcome: code })
}

/** The path of the route as registered. All unknown paths are one series, `none`. */
function routeOf(request: FastifyRequest): string {
  return request.routeOptions.url ?? 'none'
}

function outcomeOf(request: FastifyRequest, reply: FastifyReply): string {
  if (request.errorCode !== undefined) return request.errorCode
  if (reply.statusCode === 202) return 'ticket'
  return reply.statusCode < 400 ? 'ok' : 'failing'
}

function ticketEventOf(request: FastifyRequest, { statusCode }: FastifyReply): TicketEvent | undefined {
  if (routeOf(request) !== REDEEM_ROUTE) return statusCode === 202 ? 'issued' : undefined
  if (statusCode === 202) return 'pending'
  const problem = request.errorCode && ticketProblems[request.errorCode]
  if (problem !== undefined) return problem
  // Without a readable ticket there is no job.
  return statusCode < 500 && request.jobId !== undefined ? 'redeemed' : undefined
}

// A server span for every request (OpenTelemetry's conventions), a child of the caller's span.

export const requestTracePlugin = fp(
  async (app: FastifyInstance) => {
    // Loaded only with a collector.
    const { context, propagation, SpanKind, SpanStatusCode, trace } = await import('@opentelemetry/api')
    const tracer = trace.getTracer('spillway')
    const contexts = new WeakMap<FastifyRequest, Context>()

    app.addHook('onRequest', async (request) => {
      const { method, routeOptions } = request
      // Probes and scrapes would fill the traces.
      if (!routeOptions.url?.startsWith('/v1/')) return
      const span = tracer.startSpan(
        `${method} ${routeOptions.url}`,
        { kind: SpanKind.SERVER, attributes: { 'http.request.method': method, 'http.route': routeOptions.url } },
        propagation.extract(context.active(), request.headers),
      )
      contexts.set(request, trace.setSpan(context.active(), span))
      request.log = request.log.child({ traceId: span.spanContext().traceId })
    })
    app.addHook('onResponse', async (request, reply) => end(request, reply.statusCode))
    app.onClientGone((request) => end(request, CLIENT_GONE))

    function end(request: FastifyRequest, status: number): void {
      const requestContext = contexts.get(request)
      const span = requestContext && trace.getSpan(requestContext)
      if (span === undefined) return
      span.setAttribute('http.response.status_code', status)
      span.setAttribute('http.response.header.x-request-id', [toldId(request)])
      if (request.errorCode !== undefined) span.setAttribute('error.type', request.errorCode)
      if (request.jobId !== undefined) span.setAttribute('messaging.message.id', request.jobId)
      if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR })
      span.end()
    }

    app.decorateRequest('inTrace', function <T>(this: FastifyRequest, begin: () => T): T {
      const requestContext = contexts.get(this)
      return requestContext === undefined ? begin() : context.with(requestContext, begin)
    })
  },
  { name: 'request-trace', dependencies: ['request-id', 'client-gone'] },
)

declare module 'fastify' {
  interface FastifyInstance {
    requestsOn(socket: Socket): readonly FastifyRequest[]
    /** Called when a connection ends before the answer is sent. `onResponse` is not called then. */
    onClientGone(listener: ClientGoneListener): void
  }
  interface FastifyRequest {
    /** Aborts then. Fastify's `signal` aborts earlier: when the body was read. */
    readonly clientGone: AbortSignal
    /** For a redemption: the id of the request that got the ticket. */
    firstId?: string
    jobId?: string
    /** The name of the service whose key the request has, on the service API. */
    service?: string
    /** Runs `begin` in the request's trace context until its first await. Absent without traces. */
    inTrace?<T>(begin: () => T): T
  }
}

// The network by which a client is counted: an IPv4 address, or the /64 of an IPv6 address.

/** Some proxies append the port, which differs between connections. A /64 may be written in several ways. */
export function networkOf(client: string): string {
  const address = withoutPort(client).replace(/\/64$/, '')
  // Proxies may also send names, such as "unknown".
  if (isIP(address) !== 6) return address.toLowerCase()
  const canonical = new SocketAddress({ address, family: 'ipv6' }).address
  const [, mapped] = /^::ffff:([\d.]+)$/.exec(canonical) ?? []
  return mapped ?? `${firstHalf(canonical)}::/64`
}

/** Proxies may send any text. An address is shorter. */
const STORED_MAX_LENGTH = 64

/** The network in the form that is stored: bounded, and printable ASCII for any header. */
export function storedNetworkOf(client: string): string {
  return networkOf(client)
    .replace(/[^!-~]/g, '')
    .slice(0, STORED_MAX_LENGTH)
}

/** What a block of an address or of a range covers: of an IPv6 address its /64, as in all counts. */
export function rangeOf(network: string): string {
  return network.includes('/') ? network : networkOf(network)
}

export class AddressRanges {
  readonly #ranges: readonly string[]
  readonly #list = new BlockList()

  constructor(ranges: readonly string[]) {
    this.#ranges = ranges
    for (const range of ranges) {
      const [address = '', bits] = range.split('/')
      const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
      this.#list.addSubnet(address, Number(bits ?? (family === 'ipv6' ? 128 : 32)), family)
    }
  }

  has(client: string): boolean {
    const [address = ''] = withoutPort(client).split('%')
    const version = isIP(address)
    return version !== 0 && this.#list.check(address, version === 6 ? 'ipv6' : 'ipv4')
  }

  /** Whether a range shares an address with these: then one contains the first address of the other. */
  overlaps(range: string): boolean {
    const first = (each: string) => each.replace(/\/.*/, '')
    const other = new AddressRanges([range])
    return this.has(first(range)) || this.#ranges.some((own) => other.has(first(own)))
  }
}

/** The address in `address:port`, `[address]:port` or `[address]`. */
export function withoutPort(client: string): string {
  const [, bracketed, plain] = /^(?:\[(.*)\]|([^:]*))(?::\d+)?$/.exec(client) ?? []
  return bracketed ?? plain ?? client
}

/** The first four of the eight groups, with those that `::` omits. */
function firstHalf(canonical: string): string {
  const [before = [], after = []] = canonical.split('::').map((part) => part.split(':').filter((group) => group !== ''))
  const leftOut = Array<string>(8 - before.length - after.length).fill('0')
  return [...before, ...leftOut, ...after].slice(0, 4).join(':')
}
