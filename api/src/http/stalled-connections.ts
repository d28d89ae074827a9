/**
 * Ends connections whose clients do not read: Node limits how long a request may arrive, and not how long its answer may be taken. Such a
 * connection keeps a descriptor and its answers in memory, and the logins that are pipelined on it, for ever.
 */
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'

export interface StalledConnectionsOptions {
  /** How long a client may take nothing of what was written to it, in milliseconds. */
  stalledMs: number
}

/** How often connections are looked at in that time. */
const CHECKS = 4

interface Progress {
  /** Bytes that the system has taken. */
  sent: number
  sinceMs: number
}

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
