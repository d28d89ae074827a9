/**
 * Accepts several new connections in each turn of the event loop. Node accepts one (libuv since
 * 1.45; Node's issue 57364): in a spike the accept backlog overflows, and clients retry after 1, 3
 * and 7 s. Each handle of the listening socket accepts one connection a turn.
 *
 * Register it last: the connections of these handles must end before anything else is closed.
 */
import type { Server, Socket } from 'node:net'
import { closed, duplicateHandles } from '@spillway/queue/inside/node'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'

/** The accept backlog, as far as net.core.somaxconn allows. With Node's 511, a spike drops some. */
export const BACKLOG = 4_096

/**
 * The most connections that are accepted in a turn. Beside hashing on the same core, turns take 100
 * ms. A connection that comes alone wakes all handles: 3 microseconds each.
 */
const HANDLES = 64
/**
 * The same after a turn in which every handle accepted a connection. With 64, a gateway that had
 * half a core lost 8 to 14 % of 1,800 clients a second to a full backlog; with 256, no client.
 */
const CROWDED_HANDLES = 256
/** How long after such a turn the further handles are closed, in milliseconds. */
const QUIET_MS = 60_000

interface AcceptorOptions {
  /** Must be the server's own, because the last listen() on a socket sets its backlog. */
  backlog: number
  quietMs?: number
}

export const acceptorsPlugin = fp(
  async (app: FastifyInstance, options: AcceptorOptions) => {
    const acceptors = new Acceptors(app, options)
    app.server.on('connection', () => acceptors.accepted())
    // Not awaited: meanwhile the server accepts connections, one a turn.
    app.addHook('onListen', async () => acceptors.start())
    let ended: Promise<unknown> | undefined
    // Awaited in onClose: these connections may outlast Fastify's time limit for hooks.
    app.addHook('preClose', async () => {
      ended = acceptors.close()
    })
    app.addHook('onClose', () => ended)
  },
  { name: 'acceptors' },
)

class Acceptors {
  readonly #app: FastifyInstance
  readonly #options: AcceptorOptions
  readonly #closing = new AbortController()
  readonly #listening: Server[] = []
  /** Servers that are closed while their connections go on. */
  readonly #ending = new Set<Promise<unknown>>()
  /** Each starts to listen with a handle that so far accepts nothing. */
  readonly #reserve: (() => Server)[] = []
  #fetched: Promise<void> | undefined
  #acceptedInTurn = 0
  #crowdedAtMs = 0
  #quiet: NodeJS.Timeout | undefined

  constructor(app: FastifyInstance, options: AcceptorOptions) {
    this.#app = app
    this.#options = options
  }

  start(): void {
    if (!this.#closing.signal.aborted) this.#fetched = this.#fetch()
  }

  accepted(): void {
    if (this.#acceptedInTurn === 0) setImmediate(() => (this.#acceptedInTurn = 0))
    this.#acceptedInTurn++
    if (this.#acceptedInTurn < HANDLES) return
    this.#crowdedAtMs = performance.now()
    if (this.#reserve.length === 0) return
    for (const listen of this.#reserve.splice(0)) this.#listening.push(listen())
    const { quietMs = QUIET_MS } = this.#options
    this.#quiet ??= setInterval(() => {
      if (performance.now() - this.#crowdedAtMs > quietMs) this.#calmDown()
    }, quietMs / 2).unref()
  }

  #calmDown(): void {
    clearInterval(this.#quiet)
    this.#quiet = undefined
    for (const server of this.#listening.splice(HANDLES - 1)) {
      const ending = closed(server).finally(() => this.#ending.delete(ending))
      this.#ending.add(ending)
    }
    this.start()
  }

  /** Has as many handles as in a crowd, of which the first ones listen. */
  async #fetch(): Promise<void> {
    const { server, log } = this.#app
    const { backlog } = this.#options
    const onError = (error: Error) => log.warn({ err: error }, 'a handle of the listening socket accepts nothing')
    const accept = (socket: Socket) => void server.emit('connection', socket)
    try {
      await duplicateHandles(server, {
        count: CROWDED_HANDLES - 1 - this.#listening.length,
        signal: this.#closing.signal,
        take: (listen) => {
          const start = () => listen({ backlog, accept, onError })
          if (this.#closing.signal.aborted) start().close()
          else if (this.#listening.length < HANDLES - 1) this.#listening.push(start())
          else this.#reserve.push(start)
        },
      })
      log.debug({ handles: 1 + this.#listening.length }, 'several connections are accepted in a turn')
    } catch (error) {
      log.warn({ err: error, handles: 1 + this.#listening.length }, 'fewer connections are accepted in a turn')
    }
  }

  /** Resolves when the last connection has ended. */
  async close(): Promise<void> {
    this.#closing.abort()
    clearInterval(this.#quiet)
    await this.#fetched
    for (const listen of this.#reserve.splice(0)) listen().close()
    await Promise.all([...this.#ending, ...this.#listening.map(closed)])
  }
}
