/**
 * Refuses requests while the gateway is overloaded. A request can be refused at three moments: when its head has been read, before Fastify
 * handles it, because refusals must be cheap; when it was queued for too long; when a slow body has arrived. The connection stays open for
 * a retry. The log has the beginning and the end of a period of refusals, with their number, instead of a line for each.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { RetryAfter } from '@spillway/queue/wait/admission'
import { Pace } from '@spillway/queue/wait/refusal-pace'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { ErrorCode } from '../../schemas/problem-codes.js'
import { ApiError } from '../errors.js'
import type { GatewayMetrics } from '../metrics.js'
import { answerHeaders, problemOf, problemType } from '../problems.js'
import { createRouteTable } from '../route-table.js'
import { interceptRequests } from '../server-options.js'
import { ConnectionPace } from './connection-pace.js'
import type { LoadShedder, Priority, Work } from './load-shedder.js'
import { createPreference, type DeviceOf } from './preference.js'

/** Refusals of this gateway, which come back at once where they are answered at once. */
const REFUSALS: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['busy', 'too_many_requests'])
/** How often the end of a period of refusals is checked for, in milliseconds. */
const CHECK_MS = 1_000

export interface LoadSheddingOptions {
  shedder: LoadShedder
  metrics: GatewayMetrics
  /** The largest body of a refused request that is read to its end. */
  bodyLimitBytes: number
  /** Identifies known devices [no device is known]. */
  deviceOf?: DeviceOf | undefined
  /** Whether the gateway was told to stop [false]. */
  isDraining?(): boolean
}

interface KnownRoute {
  url: string
  priority: Priority
}

export const loadSheddingPlugin = fp(
  async (app: FastifyInstance, options: LoadSheddingOptions) => {
    const { shedder, metrics, bodyLimitBytes, deviceOf, isDraining = () => false } = options
    const retryAfter = new RetryAfter()
    const preference = createPreference({ deviceOf: deviceOf ?? (() => undefined), perSecond: shedder.perSecond })
    const preferred = new WeakSet<IncomingMessage>()
    const routes = createRouteTable<KnownRoute>()
    app.addHook('onRoute', ({ method, url, config }) => {
      routes.add(method, url, { url, priority: config?.priority ?? 'new' })
    })

    let since: { startedMs: number; refused: number } | undefined
    let timer: NodeJS.Timeout | undefined
    function note(): void {
      if (since === undefined) {
        since = { startedMs: performance.now(), refused: 0 }
        app.log.warn({ inHand: shedder.inHand(), delayMs: shedder.delayMs() }, 'shedding load')
        timer = setInterval(noteEnd, CHECK_MS).unref()
      }
      since.refused++
    }
    function noteEnd(): void {
      if (since === undefined || shedder.isShedding()) return
      const seconds = (performance.now() - since.startedMs) / 1_000
      app.log.warn({ refused: since.refused, seconds: Math.round(seconds) }, 'shedding load is over')
      since = undefined
      clearInterval(timer)
    }
    app.addHook('onClose', async () => clearInterval(timer))

    const { perSecond } = shedder
    const isClosing = () => isDraining() || !app.server.listening
    const answerBusy = createBusyAnswers({ bodyLimitBytes, isClosing, perSecond })
    const refusals = new Pace({ perSecond })
    // By itself: a client whose token has just expired need not wait for those that are refused in a spike.
    const rejections = new Pace({ perSecond })
    const documents = new ConnectionPace()
    app.decorate('whenRejectionIsDue', (answer) => (isClosing() ? answer() : rejections.whenDue(answer)))

    /** Calls `answer` when an answer is due: one that comes back at once where it is answered at once is held. */
    function whenDue(
      { errorCode, jobId, isInVain, routeOptions, raw }: FastifyRequest,
      status: number,
      answer: () => void,
    ) {
      if (isInVain) return rejections.whenDue(answer)
      if (errorCode === undefined)
        return routeOptions.config.priority === 'always' ? documents.whenDue(raw.socket, answer) : answer()
      if (REFUSALS.has(errorCode)) return refusals.whenDue(answer)
      // What was made up, malformed or expired: anybody can send it on and on, and it costs no hash. A challenge may be solved at once.
      const isRejection = errorCode !== 'challenge_required' && status < 500 && jobId === undefined
      return isRejection ? rejections.whenDue(answer) : answer()
    }

    function refuse(request: IncomingMessage, response: ServerResponse, route = 'none'): void {
      note()
      metrics.refused.inc({ reason: 'gateway_overloaded' })
      metrics.requests.inc({ method: request.method ?? '', route, status: busy.status, outcome: busy.code })
      answerBusy(request, response, retryAfter.seconds(shedder.perSecond()))
    }

    interceptRequests(app, (request, response, next) => {
      const [path = ''] = (request.url ?? '').split('?', 1)
      const route = routes.find(request.method ?? '', path)
      const priority = route?.priority ?? 'new'
      if (priority === 'new' && shedder.isBehind() && preference.prefersDevice(request.headers)) preferred.add(request)
      if (!shedder.admits(preferred.has(request) ? 'known' : priority)) return refuse(request, response, route?.url)
      next()
    })

    async function begin(request: FastifyRequest): Promise<void> {
      const { priority = 'new', isLight = false } = request.routeOptions.config
      if (isLight && shedder.isBehind() && preference.prefersLight()) preferred.add(request.raw)
      const asked = preferred.has(request.raw) ? 'known' : priority
      request.work = await shedder.begin(asked, () => request.raw.socket.destroyed)
      if (request.work !== undefined) return
      if (!request.raw.socket.destroyed) note()
      const retryAfterS = retryAfter.seconds(shedder.perSecond())
      throw new ApiError('busy', { reason: 'gateway_overloaded', retryAfterS })
    }
    app.addHook('onRequest', begin)
    // A request whose body has not arrived is not in hand: a client could delay its body on purpose.
    app.addHook('preParsing', (request, _reply, _payload, next) => {
      // The body of a connection that has ended is never delivered: reading it would never end, and the request would stay in hand.
      if (request.raw.destroyed) return next(new ApiError('malformed_request'))
      if (!request.raw.complete) {
        request.work?.end(false)
        request.work = undefined
      }
      next()
    })
    app.addHook('preValidation', (request, _reply, next) => {
      if (request.work !== undefined) next()
      else begin(request).then(() => next(), next)
    })
    // Every request that begins is answered, even after its client disconnected. A request that was refused without a job does not count as
    // throughput: it costs little, and a flood of them would raise the limit of requests in hand.
    app.addHook('onSend', (request, { statusCode }, _payload, next) => {
      request.work?.end(statusCode < 400 || (statusCode < 500 && request.jobId !== undefined))
      if (isClosing()) next()
      else whenDue(request, statusCode, next)
    })
  },
  { name: 'load-shedding' },
)

declare module 'fastify' {
  interface FastifyInstance {
    /** Holds what no hook sees, as other answers to what is malformed are held. */
    whenRejectionIsDue(answer: () => void): void
  }
  interface FastifyContextConfig {
    /** The priority of the route's requests in the request queue [new]. */
    priority?: Priority
    /** It uses neither PostgreSQL nor Redis: while the gateway is behind, some of its requests go before new ones [false]. */
    isLight?: boolean
  }
  interface FastifyRequest {
    /** The gateway's own work on this request. */
    work?: Work | undefined
    /** It is answered as others are, and no work was done: its answer is paced. */
    isInVain?: boolean
  }
}

// Answers 503 to refused requests on Node's own response, before Fastify handles them: refusals must be cheap.

/** What each refusal of an overloaded gateway waits, in milliseconds. */
const LEAST_DELAY_MS = 500

const busy = new ApiError('busy', { reason: 'gateway_overloaded' })
const body = JSON.stringify(problemOf(busy))
const headers = { ...answerHeaders, ...problemType, 'content-length': body.length }

type AnswerBusy = (request: IncomingMessage, response: ServerResponse, retryAfterS: number) => void

interface BusyAnswersOptions {
  bodyLimitBytes: number
  isClosing(): boolean
  /** Recent throughput, in requests a second. */
  perSecond(): number
}

/** The connection stays open for a retry, unless the gateway closes or the body is too large to be discarded. */
function createBusyAnswers({ bodyLimitBytes, isClosing, perSecond }: BusyAnswersOptions): AnswerBusy {
  const pace = new Pace({ perSecond, leastDelayMs: LEAST_DELAY_MS })

  return ({ headers: sent }, response, retryAfterS) => {
    const isTooLarge = sent['transfer-encoding'] !== undefined || Number(sent['content-length'] ?? 0) > bodyLimitBytes
    pace.whenDue(() => {
      response.writeHead(busy.status, {
        ...headers,
        'retry-after': String(retryAfterS),
        ...(isTooLarge || isClosing() ? { connection: 'close' } : {}),
      })
      response.end(body)
    })
  }
}
