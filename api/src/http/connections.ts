/** Connections of a gateway that stops, and of clients that do not read. */
import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'

interface DrainOptions {
  /** The time limit of running requests and their bodies, in milliseconds. */
  graceMs: number
  isDraining(): boolean
}

/**
 * After the signal to stop, a gateway answers all requests and ends each connection with its
 * answer. Once it closes, it answers the running requests and ends all other connections. Otherwise
 * two kinds of connections would delay it by a minute: those that clients open in advance, which
 * Node counts as busy, and those whose answer began before closing.
 */
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
    /** Whether all other requests of its connection have been answered. */
    const isOnly = (request: FastifyRequest) => app.requestsOn(request.raw.socket).every((other) => other === request)
    // Node ends the connection after such an answer, so pipelined requests would get no answer.
    app.addHook('onSend', (request, reply, _payload, next) => {
      if ((isDraining() || isClosing()) && isOnly(request)) reply.header('connection', 'close')
      next()
    })
    app.addHook('onResponse', (request, _reply, next) => {
      if (isClosing() && isOnly(request)) request.raw.socket.end()
      next()
    })
    app.addHook('preClose', async () => {
      for (const socket of unused) socket.destroy()
      overdue = setTimeout(() => app.server.closeAllConnections(), graceMs)
    })
    app.addHook('onClose', async () => clearTimeout(overdue))
  },
  { name: 'drain', dependencies: ['client-gone'] },
)

interface StalledConnectionsOptions {
  /** How long a client may accept no bytes that were written to it, in milliseconds. */
  stalledMs: number
}

/** How often connections are checked within that time. */
const CHECKS = 4

interface Progress {
  /** The bytes that the system has accepted. */
  sent: number
  sinceMs: number
}

/**
 * Ends connections whose clients do not read. Node does not limit how long a client takes to read.
 * Such a connection would keep its descriptor, its answers and its pipelined logins forever.
 */
export const stalledConnectionsPlugin = fp(
  async (app: FastifyInstance, { stalledMs }: StalledConnectionsOptions) => {
    const connections = new Map<Socket, Progress>()
    app.server.on('connection', (socket: Socket) => {
      connections.set(socket, { sent: 0, sinceMs: performance.now() })
      socket.once('close', () => connections.delete(socket))
    })

    function endStalled(): void {
      const nowMs = performance.now()
      for (const [socket, progress] of connections) {
        const sent = socket.bytesWritten - socket.writableLength
        if (socket.writableLength === 0 || sent !== progress.sent) {
          progress.sent = sent
          progress.sinceMs = nowMs
        } else if (nowMs - progress.sinceMs >= stalledMs) socket.destroy()
      }
    }
    const timer = setInterval(endStalled, stalledMs / CHECKS).unref()
    app.addHook('onClose', async () => clearInterval(timer))
  },
  { name: 'stalled-connections' },
)
