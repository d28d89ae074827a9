/** Looks at requests before Fastify does: for what must be cheap, and for what must be in every answer. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'

/** Answers a request, or calls `next` to pass it on. */
export type Intercept = (request: IncomingMessage, response: ServerResponse, next: () => void) => void

/** The last one that is added sees requests first. */
export function interceptRequests(app: FastifyInstance, intercept: Intercept): void {
  const handlers = app.server.listeners('request')
  app.server.removeAllListeners('request')
  app.server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    intercept(request, response, () => {
      for (const handle of handlers) handle.call(app.server, request, response)
    })
  })
}
