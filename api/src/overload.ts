/**
 * Refuses requests when this gateway itself is the bottleneck, regardless of workers. Requests that
 * continue something, such as a ticket or a session, have priority over new ones. First a share of
 * the new requests is refused; when all of them are refused, also a share of the others.
 *
 * The share follows the delay as in PIE (RFC 8033). It rises while the delay exceeds its target or
 * grows, and falls while the delay is below the target or shrinks. Without a delay it decays, so
 * that a gateway recovers. Three delays count: the delay of the event loop, measured as in
 * @fastify/under-pressure; the mean time that a request is in hand, for example while it waits for
 * a connection to PostgreSQL; and the time that a new connection waits until it is accepted.
 *
 * Each request is asked about before any other work, and refusals are held. The log shows when a
 * period of refusals begins and ends.
 */
import { closeSync, openSync, readSync } from 'node:fs'
import type { Server } from 'node:net'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { pacedMs, Refusals } from '@spillway/queue/order'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { ApiError, type ErrorCode } from './http/problems.js'

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

/** How often the share is adjusted, in milliseconds. */
export const UPDATE_MS = 100
/** Permanent delays that are allowed, in milliseconds. */
const LOOP_TARGET_MS = 100
const IN_HAND_TARGET_MS = 1_000
const ACCEPT_TARGET_MS = 1_000
/** With fewer requests in hand, or connections that wait, other processes delay the gateway: they take the processor. */
const FEW = 50
/** How long a burst may last before its delay counts, in milliseconds (RFC 8033, 4.4). */
const BURST_MS = 1_000
/** The weight of the distance to the target, and of the change of the delay. */
const BY_DISTANCE = 0.01
const BY_CHANGE = 0.2
/** The bound of the distance: one long pause must not close a gateway. */
const LONGEST_DISTANCE = 2
/** The factor of the share after an update without a delay. */
const FADING = 0.9
/** With a smaller share, nothing is refused. */
const LEAST_SHARE = 0.01
/** The share at which all new requests are refused. */
const ALL_NEW = 0.5
/** The weight of the last update in the throughput. */
const SMOOTHING = 0.1

/** `always` is for probes: they cost very little, and orchestrators depend on them. */
export type Priority = 'always' | 'continued' | 'new'

/** The work of this gateway on one request. */
export type Work = NonNullable<ReturnType<OverloadGuard['begin']>>

export interface GuardOptions {
  /** The delay of the event loop since the last call, in milliseconds [measured while requests come]. */
  loopDelayMs?(isIdle: boolean): number
  /** How long a new connection waits until it is accepted, in milliseconds [measured]. */
  acceptDelayMs?(): number
  random?(): number
}

export class OverloadGuard {
  readonly #loopDelayMs: (isIdle: boolean) => number
  readonly #queues: AcceptQueue[] = []
  readonly #acceptDelayMs: (elapsedMs: number) => number
  readonly #random: () => number
  #timer: NodeJS.Timeout | undefined
  #inHand = 0
  #answered = 0
  #perSecond = 0
  #delayMs = 0
  #acceptMs = 0
  #distance = -1
  #burstLeftMs = BURST_MS
  /** Up to {@link ALL_NEW}, only new requests are refused; beyond it, all these and some others. */
  #share = 0

  constructor({ loopDelayMs = measuredLoopDelay(), acceptDelayMs, random = Math.random }: GuardOptions = {}) {
    this.#loopDelayMs = loopDelayMs
    const longestMs = (elapsedMs: number) => Math.max(0, ...this.#queues.map((queue) => queue.delayMs(elapsedMs)))
    this.#acceptDelayMs = acceptDelayMs ?? longestMs
    this.#random = random
  }

  start(): void {
    let lastMs = performance.now()
    this.#timer = setInterval(() => {
      const nowMs = performance.now()
      this.update(nowMs - lastMs)
      lastMs = nowMs
    }, UPDATE_MS).unref()
  }

  close(): void {
    clearInterval(this.#timer)
  }

  /** Lets the delay of new connections to this server count. */
  watch(server: Server): void {
    this.#queues.push(new AcceptQueue(server))
  }

  /** Begins the work on a request; undefined when the request is refused. */
  begin(priority: Priority) {
    if (priority !== 'always' && this.#random() < this.#refused(priority)) return undefined
    this.#inHand++
    let state: 'in hand' | 'paused' | 'ended' = 'in hand'
    const leave = (to: 'paused' | 'ended') => {
      if (state === 'in hand') this.#inHand--
      if (state !== 'ended') state = to
    }
    return {
      /** The request is held for a worker, which is not work of this gateway. */
      pause: () => leave('paused'),
      resume: () => {
        if (state !== 'paused') return
        state = 'in hand'
        this.#inHand++
      },
      /** Further calls do nothing. */
      end: () => {
        if (state !== 'ended') this.#answered++
        leave('ended')
      },
    }
  }

  /** Adjusts the share that is refused. Call it every {@link UPDATE_MS}. */
  update(elapsedMs: number): void {
    const loopMs = this.#loopDelayMs(this.#inHand + this.#answered === 0)
    this.#perSecond += SMOOTHING * ((this.#answered * 1_000) / elapsedMs - this.#perSecond)
    this.#answered = 0
    // Little's law: the mean time in hand is the number in hand divided by the throughput.
    const inHandMs = (this.#inHand * 1_000) / Math.max(1, this.#perSecond)
    const isCrowded = this.#inHand > FEW
    const acceptMs = this.#acceptDelayMs(elapsedMs)
    this.#delayMs = Math.max(loopMs, acceptMs, isCrowded ? inHandMs : 0)
    const ofRequests = isCrowded ? Math.max(loopMs / LOOP_TARGET_MS, inHandMs / IN_HAND_TARGET_MS) : 0
    const pressure = Math.max(ofRequests, acceptMs / ACCEPT_TARGET_MS)
    // While new requests are refused, the connections that wait already must still be accepted.
    const isDraining = ofRequests < 1 && acceptMs <= this.#acceptMs
    this.#acceptMs = acceptMs
    const distance = Math.min(LONGEST_DISTANCE, pressure - 1)
    const change = BY_DISTANCE * distance + BY_CHANGE * (distance - this.#distance)
    this.#distance = distance
    if (this.#share === 0 && distance <= 0) this.#burstLeftMs = BURST_MS
    else this.#burstLeftMs -= elapsedMs
    const most = this.#isBurst() ? ALL_NEW : isDraining ? Math.max(ALL_NEW, this.#share) : 1
    this.#share = Math.max(0, Math.min(most, this.#share + change))
    if (distance < -0.5) this.#share *= FADING
    if (this.#share < LEAST_SHARE) this.#share = 0
  }

  /** Whether some requests are refused. */
  isRefusing(): boolean {
    return this.#share > 0 && !this.#isBurst()
  }

  /** Recent throughput, in requests a second. */
  perSecond(): number {
    return this.#perSecond
  }

  inHand(): number {
    return this.#inHand
  }

  /** The delay at the last update, in milliseconds. */
  delayMs(): number {
    return this.#delayMs
  }

  #isBurst(): boolean {
    return this.#burstLeftMs > 0
  }

  #refused(priority: 'continued' | 'new'): number {
    if (this.#isBurst()) return 0
    return priority === 'new' ? this.#share / ALL_NEW : (this.#share - ALL_NEW) / (1 - ALL_NEW)
  }
}

/**
 * The mean delay beyond the sampling interval since the last call. Sampling takes half of an idle
 * gateway's processor time, so it ends with the requests.
 */
function measuredLoopDelay(): (isIdle: boolean) => number {
  const resolution = 10
  const histogram = monitorEventLoopDelay({ resolution })
  return (isIdle) => {
    const meanMs = histogram.mean / 1e6
    histogram.reset()
    if (isIdle) histogram.disable()
    else histogram.enable()
    return Number.isNaN(meanMs) ? 0 : Math.max(0, meanMs - resolution)
  }
}

/**
 * The connections that a server has not accepted yet. Node accepts one in each turn of the event loop
 * (libuv since 1.45, nodejs/node#57364). Beside hashing on the same core their queue can grow for
 * seconds, while few requests are in hand.
 */
class AcceptQueue {
  readonly #server: Server
  #accepted = 0
  #perSecond = 0

  constructor(server: Server) {
    this.#server = server
    server.on('connection', () => this.#accepted++)
  }

  /** How long the last connection in the queue will wait, in milliseconds. */
  delayMs(elapsedMs: number): number {
    this.#perSecond += SMOOTHING * ((this.#accepted * 1_000) / elapsedMs - this.#perSecond)
    const length = this.#accepted === 0 ? 0 : lengthOfAcceptQueue(this.#server)
    this.#accepted = 0
    return length < FEW ? 0 : (length * 1_000) / Math.max(1, this.#perSecond)
  }
}

const page = Buffer.alloc(4_096)

/**
 * Linux lists listening sockets first (state 0A), with the length of their queue as `rx_queue`
 * (proc_pid_net(5)). 0 on other systems.
 */
function lengthOfAcceptQueue(server: Server): number {
  const address = server.address()
  if (address === null || typeof address === 'string') return 0
  const port = address.port.toString(16).toUpperCase().padStart(4, '0')
  const ofPort = new RegExp(`:${port} \\S+ 0A \\S+:(\\w+)`)
  let file: number | undefined
  try {
    file = openSync(address.family === 'IPv6' ? '/proc/net/tcp6' : '/proc/net/tcp', 'r')
    for (let text = ' 0A '; text.includes(' 0A '); ) {
      text = page.toString('latin1', 0, readSync(file, page))
      const [, length] = ofPort.exec(text) ?? []
      if (length !== undefined) return Number.parseInt(length, 16)
    }
    return 0
  } catch {
    return 0
  } finally {
    if (file !== undefined) closeSync(file)
  }
}

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
