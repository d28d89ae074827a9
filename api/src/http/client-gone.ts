/**
 * Clients that go away before their answers. A response tells of it only once it owns its connection: of pipelined requests all
 * but the first would never hear of it. So it is the connection that is followed, by one listener, with its requests in hand.
 */
import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'

type Requests = Map<FastifyRequest, FastifyReply>

export const clientGonePlugin = fp(
  async (app: FastifyInstance) => {
    const inHand = new WeakMap<Socket, Requests>()
    const controllers = new WeakMap<FastifyRequest, AbortController>()
    const listeners: ClientGoneListener[] = []

    function controllerOf(request: FastifyRequest): AbortController {
      const controller = controllers.get(request) ?? new AbortController()
      controllers.set(request, controller)
      return controller
    }

    function follow(socket: Socket): Requests {
      const requests: Requests = new Map()
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
      const requests = inHand.get(socket) ?? follow(socket)
      requests.set(request, reply)
      next()
    })
    app.addHook('onResponse', (request, _reply, next) => {
      inHand.get(request.raw.socket)?.delete(request)
      next()
    })
    app.decorate('owesAnswer', (socket) => [...(inHand.get(socket)?.keys() ?? [])].some(({ raw }) => raw.complete))
    app.decorate('onClientGone', (listener) => listeners.push(listener))
    // Made for those who ask for it: most requests are answered before anybody does.
    app.decorateRequest('clientGone', {
      getter() {
        return controllerOf(this).signal
      },
    })
  },
  { name: 'client-gone' },
)

type ClientGoneListener = (request: FastifyRequest, reply: FastifyReply) => void

declare module 'fastify' {
  interface FastifyInstance {
    /** Whether a request that arrived whole on this connection has not been answered yet. */
    owesAnswer(socket: Socket): boolean
    /** Calls this for every request whose connection ends before its answer has been sent. For those there is no `onResponse`. */
    onClientGone(listener: ClientGoneListener): void
  }
  interface FastifyRequest {
    /** Fires then. Fastify's `signal` will not do: it follows the request's stream, which closes when the body has been read. */
    readonly clientGone: AbortSignal
  }
}
