/**
 * Limits HTTP pipelining. Node's server begins every request that it has read of a connection,
 * however many are unanswered, and it reads 64 KB at a time. Fifty connections with 20,000 requests
 * each kept all other clients waiting for more than ten seconds, and took a gigabyte.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Unanswered requests of one connection. Browsers and most HTTP clients have one. */
const UNANSWERED_MAX = 16
/** Bytes parsed before requests are counted: one common request, or 30 of the shortest. */
const PART_BYTES = 512

/**
 * Destroys connections with more unanswered requests, without an answer: it would wait for earlier
 * ones. To be called before the server listens, after all other listeners of `request` are added.
 */
export function limitPipelining(server: Server): void {
  const unanswered = new WeakMap<Socket, number>()
  const countOf = (socket: Socket) => unanswered.get(socket) ?? 0

  server.prependListener('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    unanswered.set(socket, countOf(socket) + 1)
    response.once('close', () => unanswered.set(socket, countOf(socket) - 1))
  })

  server.on('connection', (socket: Socket) => {
    // Node's parser. It gives up its shortcut past the stream when there is another listener.
    const parsers = socket.listeners('data')
    socket.removeAllListeners('data')
    socket.on('data', (bytes: Buffer) => {
      for (let at = 0; at < bytes.length && !socket.destroyed; at += PART_BYTES) {
        for (const parse of parsers) parse.call(socket, bytes.subarray(at, at + PART_BYTES))
        if (countOf(socket) > UNANSWERED_MAX) socket.destroy()
        const rest = bytes.subarray(at + PART_BYTES)
        // Node paused the connection, because answers pile up or a body is not read. Its parser
        // fails on bytes that come before it resumes.
        if (rest.length > 0 && socket.isPaused()) {
          socket.unshift(rest)
          return
        }
      }
    })
  })
}
