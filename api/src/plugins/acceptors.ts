/**
 * Accepts several new connections in each turn of the event loop. Node accepts one (libuv since
 * 1.45; Node's issue 57364), so a gateway whose turns last 10 ms accepts a hundred a second. In a
 * spike the accept backlog then overflows, and clients retry after 1, 3 and 7 s. Each handle of the
 * listening socket accepts one connection a turn.
 *
 * Register it last: the connections of these handles must end before anything else is closed.
 */
import type { Server, Socket } from 'node:net'
import { addHandles, closed } from '@spillway/queue/inside/node'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'

/**
 * The accept backlog, as far as net.core.somaxconn allows. With Node's 511, a spike drops
 * connections, and clients retry after 1, 3 and 7 s.
 */
export const BACKLOG = 4_096

/**
 * The most connections that are accepted in a turn. Beside hashing on the same core, turns take 100
 * ms. Of five thousand clients in five seconds, 6 to 8 % then waited for 10 s with 32 handles, and
 * no client with 64. A connection that comes alone wakes all handles: 5 microseconds each.
 */
const HANDLES = 64

interface AcceptorOptions {
  /** Must be the server's own, because the last listen() on a socket sets its backlog. */
  backlog: number
}

export const acceptorsPlugin = fp(
  async (app: FastifyInstance, { backlog }: AcceptorOptions) => {
    const others: Server[] = []
    const closing = new AbortController()
    let added: Promise<void> | undefined

    async function add(): Promise<void> {
      const accept = (socket: Socket) => void app.server.emit('connection', socket)
      try {
        await addHandles(app.server, others, { count: HANDLES - 1, backlog, signal: closing.signal, accept })
        app.log.debug({ handles: 1 + others.length }, 'several connections are accepted in a turn')
      } catch (error) {
        app.log.warn({ err: error, handles: 1 + others.length }, 'fewer connections are accepted in a turn')
      }
    }
    // Not awaited: meanwhile the server accepts connections, one a turn.
    app.addHook('onListen', async () => {
      if (!closing.signal.aborted) added = add()
    })
    let ended: Promise<unknown> | undefined
    // Awaited in onClose: these connections may outlast Fastify's time limit for hooks.
    app.addHook('preClose', async () => {
      closing.abort()
      ended = Promise.all([added, ...others.map(closed)])
    })
    app.addHook('onClose', () => ended)
  },
  { name: 'acceptors' },
)
