/**
 * Closing: requests in hand are answered, and nothing else holds the gateway up. Two kinds of connection would, for a minute:
 * one on which no request has come yet, as browsers and proxies open them in advance, because Node counts it as busy; and one
 * whose request began before the end, because its answer does not say that it is the last.
 */
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'

export interface DrainOptions {
  /** How long requests in hand have, in milliseconds, even those whose bodies do not arrive. */
  graceMs: number
}

export const drainPlugin = fp(
  async (app: FastifyInstance, { graceMs }: DrainOptions) => {
    const unused = new Set<Socket>()
    app.server.on('connection', (socket: Socket) => {
      unused.add(socket)
      socket.once('close', () => unused.delete(socket))
    })
    app.addHook('onRequest', async (request) => {
      unused.delete(request.raw.socket)
    })

    let overdue: NodeJS.Timeout | undefined
    app.addHook('onSend', async (_request, reply) => {
      if (overdue !== undefined) reply.header('connection', 'close')
    })
    app.addHook('preClose', async () => {
      for (const socket of unused) socket.destroy()
      overdue = setTimeout(() => app.server.closeAllConnections(), graceMs)
    })
    app.addHook('onClose', async () => clearTimeout(overdue))
  },
  { name: 'drain' },
)
