/**
 * Detects clients that disconnect before their answers. A response emits `close` only once it owns its
 * connection: of pipelined requests only the first would. So one listener for each connection notifies
 * all its requests.
 */
import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'

type ClientGoneListener = (request: FastifyRequest, reply: FastifyReply) => void

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
    app.decorate('isOnlyRequest', (request) => app.requestsOn(request.raw.socket).every((other) => other === request))
    app.decorate('onClientGone', (listener) => listeners.push(listener))
    app.decorateRequest('clientGone', {
      getter() {
        return controllerOf(this).signal
      },
    })
  },
  { name: 'client-gone' },
)

declare module 'fastify' {
  interface FastifyInstance {
    /** The requests of this connection that have not been answered yet. */
    requestsOn(socket: Socket): readonly FastifyRequest[]
    /** Whether all other requests of its connection have been answered. */
    isOnlyRequest(request: FastifyRequest): boolean
    /** Called where a connection ends before the answer is sent; `onResponse` is not. */
    onClientGone(listener: ClientGoneListener): void
  }
  interface FastifyRequest {
    /** Aborts then. Fastify's `signal` aborts too early: once the body was read. */
    readonly clientGone: AbortSignal
  }
}
