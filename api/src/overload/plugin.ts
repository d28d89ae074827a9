/**
 * Asks the guard about each request before any other work, and holds refusals. The log shows when a
 * period of refusals begins and ends.
 */
import { pacedMs, Refusals } from '@spillway/queue/order'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { ApiError } from '../http/errors.js'
import type { ErrorCode } from '../schemas/problem-codes.js'
import type { OverloadGuard, Priority, Work } from './guard.js'

/** The codes of answers after which clients retry. */
const REFUSALS: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['busy', 'too_many_requests'])
/** How often the end of a period of refusals is checked, in milliseconds. */
const CHECK_MS = 1_000

interface OverloadOptions {
  guard: OverloadGuard
  /** How long a request is held, in milliseconds. A refusal is held for a part of that. */
  holdMs: number
  paceMs?: ((holdMs: number) => number) | undefined
  /** How many jobs the workers do in a second. */
  jobsPerSecond(): number
  /** Whether the gateway was told to stop. */
  isDraining(): boolean
}

export const overloadPlugin = fp(
  async (app: FastifyInstance, { guard, holdMs, paceMs = pacedMs, jobsPerSecond, isDraining }: OverloadOptions) => {
    guard.watch(app.server)
    const refusals = new Refusals()
    const pace = new Pace(() => paceMs(holdMs))
    app.addHook('preClose', async () => pace.close())

    const isLarge = ({ headers }: FastifyRequest) =>
      headers['transfer-encoding'] !== undefined ||
      Number(headers['content-length'] ?? 0) > (app.initialConfig.bodyLimit ?? 0)

    let since: { startedMs: number; refused: number } | undefined
    const timer = setInterval(() => {
      if (since === undefined || guard.isRefusing()) return
      const seconds = Math.round((performance.now() - since.startedMs) / 1_000)
      app.log.warn({ refused: since.refused, seconds }, 'the gateway is overloaded no more')
      since = undefined
    }, CHECK_MS).unref()
    app.addHook('onClose', async () => clearInterval(timer))
    function note(): void {
      if (since === undefined) {
        since = { startedMs: performance.now(), refused: 0 }
        app.log.warn({ inHand: guard.inHand(), delayMs: guard.delayMs() }, 'the gateway is overloaded')
      }
      since.refused++
    }

    app.decorateRequest('work')
    app.addHook('onRequest', (request, reply, next) => {
      request.work = guard.begin(request.routeOptions.config.priority ?? 'new')
      if (request.work !== undefined) return next()
      note()
      // Large bodies are not read.
      if (isLarge(request)) reply.header('connection', 'close')
      // The throughput of a gateway that was idle says nothing about what it can do.
      const retryAfterS = refusals.retryAfterS(Math.max(1, guard.perSecond(), jobsPerSecond()))
      next(new ApiError('busy', { reason: 'gateway_overloaded', retryAfterS }))
    })
    // A request without its body is not work yet: a client could delay the body on purpose.
    app.addHook('preParsing', (request, _reply, _payload, next) => {
      // The body of a closed connection never arrives, so the request would stay in hand.
      if (request.raw.destroyed) return next(new ApiError('malformed_request'))
      if (!request.raw.complete) request.work?.pause()
      next()
    })
    app.addHook('preValidation', (request, _reply, next) => {
      request.work?.resume()
      next()
    })
    // Every request that begins is answered, even after its client disconnected.
    app.addHook('onSend', (request, _reply, _payload, next) => {
      request.work?.end()
      const isClosing = isDraining() || !app.server.listening
      if (isClosing || request.errorCode === undefined || !REFUSALS.has(request.errorCode)) return next()
      pace.hold(next)
    })
  },
  { name: 'overload' },
)

// Holds refusals, so that a client that asks again at once gains nothing.

/** The most held answers. Beyond it, the oldest is sent: a flood must not fill the memory. */
const MOST_HELD = 10_000

/** Answers that are held, each with a timer. */
export class Pace {
  readonly #heldMs: () => number
  readonly #most: number
  readonly #held = new Map<NodeJS.Timeout, () => void>()

  /** @param heldMs how long an answer is held, in milliseconds */
  constructor(heldMs: () => number, most = MOST_HELD) {
    this.#heldMs = heldMs
    this.#most = most
  }

  /** Calls `answer` when it is due. */
  hold(answer: () => void): void {
    const ms = this.#heldMs()
    if (ms <= 0) {
      answer()
      return
    }
    const timer = setTimeout(() => this.#give(timer), ms)
    this.#held.set(timer, answer)
    const [oldest] = this.#held.keys()
    if (this.#held.size > this.#most && oldest !== undefined) this.#give(oldest)
  }

  /** Sends all answers that are held, so that nobody waits for a process that stops. */
  close(): void {
    for (const timer of this.#held.keys()) this.#give(timer)
  }

  #give(timer: NodeJS.Timeout): void {
    clearTimeout(timer)
    const answer = this.#held.get(timer)
    this.#held.delete(timer)
    answer?.()
  }
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Whether requests of the route continue something, or are always answered [new]. */
    priority?: Priority
  }
  interface FastifyRequest {
    /** This gateway's own work on the request. */
    work?: Work | undefined
  }
}
