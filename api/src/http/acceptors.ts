/**
 * Accepts several new connections in each turn of the event loop. Node accepts one (libuv since 1.45, pull request 3696; Node's issue
 * 57364): a gateway whose turns last 10 ms accepts a hundred a second. In a spike the system's queue of new connections
 * overflows, and clients try again after 1, 3 and 7 s. Each handle of the listening socket is good for one a turn.
 *
 * To be registered last: connections of these handles end before anything else is closed.
 */
import type { Server, Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { addHandles, closed } from './listening-handles.js'

/** Connections a turn. */
const HANDLES = 16

export interface AcceptorOptions {
  /** As the server listens with, because the last one to listen on a socket sets it. */
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
    // Not awaited: connections are accepted meanwhile, one at a time.
    app.addHook('onListen', async () => {
      if (!closing.signal.aborted) added = add()
    })
    let ended: Promise<unknown> | undefined
    // Not awaited: the requests of these connections may take longer than Fastify has a hook wait.
    app.addHook('preClose', async () => {
      closing.abort()
      ended = Promise.all([added, ...others.map(closed)])
    })
    app.addHook('onClose', () => ended)
  },
  { name: 'acceptors' },
)
