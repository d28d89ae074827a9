/**
 * Refuses requests while the gateway is overloaded: once the head is read, before Fastify, because
 * refusals must be cheap; when a request was queued for too long; when a slow body has arrived. The
 * connection stays open for a retry. The log has the beginning and the end of a period of refusals.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { RetryAfter } from '@spillway/queue/wait/admission'
import { Pace } from '@spillway/queue/wait/refusal-pace'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { ErrorCode } from '../../schemas/problem-codes.js'
import { ApiError } from '../errors.js'
import type { GatewayMetrics } from '../metrics.js'
import { answerHeaders, problemOf, problemType, REQUEST_ID_HEADER, RouteTable } from '../problems.js'
import { interceptRequests } from '../server-options.js'
import { ConnectionPace } from '../token-bucket.js'
import type { LoadShedder, Priority, Work } from './load-shedder.js'
import { type DeviceOf, Preference } from './preference.js'

/** Answers after which clients come back at once, where they are answered at once. */
const REFUSALS: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['busy', 'too_many_requests'])
/** How often the end of a period of refusals is checked for, in milliseconds. */
const CHECK_MS = 1_000
/** The least time that a refusal of an overloaded gateway waits, in milliseconds. */
const BUSY_DELAY_MS = 500

const busy = new ApiError('busy', { reason: 'gateway_overloaded' })
const busyHeaders = { ...answerHeaders, ...problemType }

interface LoadSheddingOptions {
  shedder: Pick<LoadShedder, keyof LoadShedder>
  metrics: GatewayMetrics
  /** The largest body of a refused request that is read to its end. */
  bodyLimitBytes: number
  /** Identifies known devices [no device is known]. */
  deviceOf?: DeviceOf | undefined
  /** Whether the gateway was told to stop [false]. */
  isDraining?(): boolean
}

export const loadSheddingPlugin = fp(
  async (app: FastifyInstance, options: LoadSheddingOptions) => {
    const { shedder, metrics, bodyLimitBytes, deviceOf, isDraining = () => false } = options
    const retryAfter = new RetryAfter()
    const perSecond = () => shedder.perSecond()
    const preference = new Preference({ deviceOf: deviceOf ?? (() => undefined), perSecond })
    const preferred = new WeakSet<IncomingMessage>()
    const routes = new RouteTable<{ url: string; priority: Priority }>()
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

    const isClosing = () => isDraining() || !app.server.listening
    const busyAnswers = new Pace({ perSecond, leastDelayMs: BUSY_DELAY_MS })
    const refusals = new Pace({ perSecond })
    // Apart from refusals: a client whose token has just expired does not wait for a spike's.
    const rejections = new Pace({ perSecond })
    const documents = new ConnectionPace()
    app.decorate('whenRejectionIsDue', (answer) => (isClosing() ? answer() : rejections.whenDue(answer)))

    /** Calls `answer` when it is due. Answers after which clients come back at once are paced. */
    function whenDue(
      { errorCode, jobId, isInVain, routeOptions, raw }: FastifyRequest,
      status: number,
      answer: () => void,
    ) {
      if (isInVain) return rejections.whenDue(answer)
      if (errorCode === undefined)
        return routeOptions.config.priority === 'always' ? documents.whenDue(raw.socket, answer) : answer()
      if (REFUSALS.has(errorCode)) return refusals.whenDue(answer)
      // Made up, malformed or expired: anybody can send it on and on, and it costs no hash. A
      // challenge may be solved at once.
      const isRejection = errorCode !== 'challenge_required' && status < 500 && jobId === undefined
      return isRejection ? rejections.whenDue(answer) : answer()
    }

    /** Answers on Node's own response, before Fastify. Too large a body ends the connection. */
    function refuse({ method = '', headers }: IncomingMessage, response: ServerResponse, route = 'none'): void {
      note()
      metrics.refused.inc({ reason: 'gateway_overloaded' })
      metrics.requests.inc({ method, route, status: busy.status, outcome: busy.code })
      const retryAfterS = retryAfter.seconds(perSecond())
      const isTooLarge =
        headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > bodyLimitBytes
      const requestId = String(headers[REQUEST_ID_HEADER])
      const body = JSON.stringify(problemOf(busy, requestId))
      busyAnswers.whenDue(() => {
        const closing = isTooLarge || isClosing() ? { connection: 'close' } : {}
        const own = {
          [REQUEST_ID_HEADER]: requestId,
          'content-length': body.length,
          'retry-after': String(retryAfterS),
        }
        response.writeHead(busy.status, { ...busyHeaders, ...own, ...closing })
        response.end(body)
      })
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
      const retryAfterS = retryAfter.seconds(perSecond())
      throw new ApiError('busy', { reason: 'gateway_overloaded', retryAfterS })
    }
    app.addHook('onRequest', begin)
    // A request whose body has not arrived is not in hand: a client could delay it on purpose.
    app.addHook('preParsing', (request, _reply, _payload, next) => {
      // The body of a connection that has ended is never delivered: the request would stay in hand.
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
    // Every request that begins is answered, even after its client disconnected. A request that was
    // refused without a job is no throughput: a flood of them would raise the limit of requests in
    // hand.
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
    /** Whether it uses neither PostgreSQL nor Redis, and may go before new requests [false]. */
    isLight?: boolean
  }
  interface FastifyRequest {
    /** The gateway's own work on this request. */
    work?: Work | undefined
    /** It is answered as others are, and no work was done: its answer is paced. */
    isInVain?: boolean
  }
}
