/**
 * Draining: a gateway that was told to stop answers all requests and ends each connection with its answer; once it closes, it answers
 * the requests in hand and ends all other connections at once. Without this, two kinds of connection would delay it by a minute: those
 * without a first request, as browsers and proxies open in advance, because Node counts them as busy; and those whose request began
 * before closing, because its answer lacks `Connection: close`.
 */
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'

export interface DrainOptions {
  /** The time limit of requests in hand, in milliseconds; those whose bodies have not arrived included. */
  graceMs: number
  /** Whether the gateway was told to stop. */
  isDraining(): boolean
}

/** Needs client-gone.ts. */
export const drainPlugin = fp(
  async (app: FastifyInstance, { graceMs, isDraining }: DrainOptions) => {
    const unused = new Set<Socket>()
    app.server.on('connection', (socket: Socket) => {
      unused.add(socket)
      socket.once('close', () => unused.delete(socket))
    })
    app.addHook('onRequest', (request, _reply, next) => {
      unused.delete(request.raw.socket)
      next()
    })

    let overdue: NodeJS.Timeout | undefined
    const isClosing = () => overdue !== undefined
    // Node ends the connection behind an answer that says so: further requests that were pipelined would get none.
    app.addHook('onSend', (request, reply, _payload, next) => {
      if ((isDraining() || isClosing()) && app.isOnlyRequest(request)) reply.header('connection', 'close')
      next()
    })
    app.addHook('onResponse', (request, _reply, next) => {
      if (isClosing() && app.isOnlyRequest(request)) request.raw.socket.end()
      next()
    })
    app.addHook('preClose', async () => {
      for (const socket of unused) socket.destroy()
      overdue = setTimeout(() => app.server.closeAllConnections(), graceMs)
    })
    app.addHook('onClose', async () => clearTimeout(overdue))
  },
  { name: 'drain' },
)
