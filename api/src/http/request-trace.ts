/** A server span for every request (OpenTelemetry's conventions), a child of the caller's span. */
import { type Context, context, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { toldId } from './request-id.js'

const CLIENT_GONE = 499

export default fp(
  async (app: FastifyInstance) => {
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
  { name: 'request-trace' },
)

declare module 'fastify' {
  interface FastifyRequest {
    /** Runs `begin` in the request's trace context until its first await. Absent without traces. */
    inTrace?<T>(begin: () => T): T
  }
}
