/**
 * Logs one line for each request, without bodies, headers or addresses, and counts it by route and
 * outcome. The worker logs the same id. Requests whose client disconnected are counted too.
 */
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { GatewayMetrics, TicketEvent } from '../ops/metrics.js'
import type { ErrorCode } from '../schemas/problem-codes.js'
import type { ApiError } from './errors.js'

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
      count(metrics, request, 'client_gone', 499)
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
  { name: 'request-log' },
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

declare module 'fastify' {
  interface FastifyRequest {
    jobId?: string
    /** The name of the service whose key the request has, on the service API. */
    service?: string
  }
}
