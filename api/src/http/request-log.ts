/** Logs one line for each request, without bodies, headers or addresses. The job id leads to the worker's line of the same login. */
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'

export const requestLogPlugin = fp(
  async (app: FastifyInstance) => {
    app.addHook('onResponse', (request, reply, next) => {
      request.log.info(
        {
          method: request.method,
          route: request.routeOptions.url ?? 'none',
          service: request.service,
          status: reply.statusCode,
          code: request.errorCode,
          jobId: request.jobId,
          ms: Math.round(reply.elapsedTime * 10) / 10,
        },
        'request',
      )
      next()
    })
    app.onClientGone((request) => {
      request.log.info(
        {
          method: request.method,
          route: request.routeOptions.url ?? 'none',
          service: request.service,
          jobId: request.jobId,
        },
        'client gone',
      )
    })
  },
  { name: 'request-log' },
)

declare module 'fastify' {
  interface FastifyRequest {
    /** The job that this request waits for, once it has been added. */
    jobId?: string
    /** The name of the service whose key the request has, on the service API. */
    service?: string
  }
}
