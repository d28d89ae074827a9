/**
 * Detects clients that disconnect before their answers. A response emits `close` only once it owns its connection, so of pipelined
 * requests only the first would. Therefore one listener for each connection notifies all of its requests.
 */
import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'

type Requests = Map<FastifyRequest, FastifyReply>

export const clientGonePlugin = fp(
  async (app: FastifyInstance) => {
    const inHand = new WeakMap<Socket, Requests>()
    const controllers = new WeakMap<FastifyRequest, AbortController>()
    const gone = new WeakSet<FastifyRequest>()
    const listeners: ClientGoneListener[] = []

    function signalOf(request: FastifyRequest): AbortSignal {
      const controller = controllers.get(request) ?? new AbortController()
      controllers.set(request, controller)
      if (gone.has(request)) controller.abort()
      return controller.signal
    }

    function track(socket: Socket): Requests {
      const requests: Requests = new Map()
      inHand.set(socket, requests)
      socket.once('close', () => {
        for (const [request, reply] of requests) {
          for (const listener of listeners) listener(request, reply)
          gone.add(request)
          controllers.get(request)?.abort()
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
    // Created on demand: most requests are answered without it.
    app.decorateRequest('clientGone', {
      getter() {
        return signalOf(this)
      },
    })
  },
  { name: 'client-gone' },
)

type ClientGoneListener = (request: FastifyRequest, reply: FastifyReply) => void

declare module 'fastify' {
  interface FastifyInstance {
    /** The requests of this connection that have not been answered yet. */
    requestsOn(socket: Socket): readonly FastifyRequest[]
    /** Whether all other requests of its connection have been answered. */
    isOnlyRequest(request: FastifyRequest): boolean
    /** Calls the listener for each request whose connection ends before its answer is sent. `onResponse` is not called for these. */
    onClientGone(listener: ClientGoneListener): void
  }
  interface FastifyRequest {
    /** Aborts then. Fastify's `signal` aborts too early: when the request's stream closes, which is after its body was read. */
    readonly clientGone: AbortSignal
  }
}
