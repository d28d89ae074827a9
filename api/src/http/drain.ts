/**
 * Draining: a closing gateway answers the requests in hand and closes all other connections at once. Without this, two kinds of
 * connection would delay it by a minute: those without a first request, as browsers and proxies open in advance, because Node counts
 * them as busy; and those whose request began before closing, because its answer lacks `Connection: close`.
 */
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'

export interface DrainOptions {
  /** The time limit of requests in hand, in milliseconds; those whose bodies have not arrived included. */
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
