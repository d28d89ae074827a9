/**
 * Conducts operations: a request is admitted, started, waits, and is finished or gets a ticket. A
 * ticket is read, waits, and is finished or stays pending.
 */
import { type Database, isDatabaseUnavailable } from '@spillway/prisma'
import type { JobRef, Keyring, PasswordClient, Verdict } from '@spillway/queue/queue-client'
import type { Admission, Admitted } from '@spillway/queue/wait/admission'
import { Pace } from '@spillway/queue/wait/refusal-pace'
import { isExpired, type Ticket, Tickets, told } from '@spillway/queue/wait/tickets'
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { FromSchema } from 'json-schema-to-ts'
import { ApiError } from '../plugins/errors.js'
import type { LimitRequest } from '../plugins/limits.js'
import type { LoadShedder } from '../plugins/load-shedding/load-shedder.js'
import type { DeviceOf } from '../plugins/load-shedding/preference.js'
import type { GatewayMetrics } from '../plugins/metrics.js'
import { toldId } from '../plugins/problems.js'
import { redeemAs } from '../plugins/request-id.js'
import type { TicketBody } from '../schemas/bodies.js'
import { sessionClientOf } from '../sessions/session-opening.js'
import type { LineDocument } from './line-document.js'
import { type ClientJob, isTicketEnd, type Operation, type Response, StartAgain } from './operation.js'
import { UsedTickets } from './used-tickets.js'
import {
  type Call,
  type HeldCall,
  negotiateWaitMs,
  remainingWaitMs,
  tooLate,
  UNAVAILABLE_RETRY_S,
  waitForVerdict,
} from './verdict-wait.js'

/** The contents of a ticket: the kind of its operation, and what that needs besides the verdict. */
interface Contents {
  kind: string
  /** Of the request that got the ticket. */
  requestId: string
}

function isContents(contents: unknown): contents is Contents {
  if (typeof contents !== 'object' || contents === null || !('kind' in contents) || !('requestId' in contents))
    return false
  return typeof contents.kind === 'string' && typeof contents.requestId === 'string'
}

/** The clock is an estimate: after a wait until the deadline some milliseconds may be left. */
const CLOCK_ERROR_MS = 100
interface ConductorOptions<Deps> {
  deps: Deps
  operations: readonly Operation<Deps>[]
  passwords: PasswordClient
  database: Database
  keyring: Keyring
  admission: Admission
  metrics: GatewayMetrics
  log: FastifyBaseLogger
  line: LineDocument
  /** The known device whose token a request shows [no device is known]. */
  deviceOf?: DeviceOf
  shedder: LoadShedder
  config: { LOGIN_WAIT_MS: number; TICKET_TTL_MS: number }
  /** Rate-limits valid tickets. Forged tickets are rejected before this, without Redis. */
  limitRedemption: LimitRequest
  /** Whether a ticket is its caller's own [anybody may redeem it]. */
  isOwn?(contents: object, request: FastifyRequest): boolean
}

export class Conductor<Deps> {
  readonly operations: readonly Operation<Deps>[]
  readonly #options: ConductorOptions<Deps>
  readonly #tickets: Tickets<Contents>
  readonly #usedTickets: UsedTickets
  /**
   * Paces tickets that would be given at once: clients would throw them away and log in anew. A busy
   * gateway that held them for a whole wait would outlast proxies' timeouts (`pnpm load spike`).
   */
  readonly #ticketPace: Pace

  constructor(options: ConductorOptions<Deps>) {
    const { operations, keyring, database, log, shedder, config } = options
    this.operations = operations
    this.#options = options
    this.#tickets = new Tickets(keyring, 'ticket', isContents)
    this.#usedTickets = new UsedTickets(database, log)
    this.#ticketPace = new Pace({ perSecond: () => shedder.perSecond(), longestDelayMs: config.LOGIN_WAIT_MS / 2 })
  }

  mount(app: FastifyInstance): void {
    app.addHook('onClose', async () => this.#usedTickets.close())
    const refuseWhenFull = async (request: FastifyRequest) => this.#refuseWhenFull(request)
    for (const operation of this.operations) {
      const route = operation.route(app)
      app.route({
        ...route,
        onRequest: [refuseWhenFull, ...route.onRequest],
        handler: async (request, reply) => send(reply, await this.run(operation, request, reply)),
      })
    }
  }

  /** Runs an operation. Throws `busy` before it starts, `unavailable`, and refusals of it. */
  async run(operation: Operation<Deps>, request: FastifyRequest, reply: FastifyReply): Promise<Response> {
    const runOnce = async () => {
      const held = await this.#start({ operation, request, reply })
      return await this.#conclude(held, await waitForVerdict(held, this.#options))
    }
    try {
      return await runOnce()
    } catch (error) {
      if (!(error instanceof StartAgain)) throw error
      return await runOnce().catch((again: unknown) => {
        throw again instanceof StartAgain ? new ApiError('unavailable', { cause: again, retryAfterS: 1 }) : again
      })
    }
  }

  /**
   * Continues the operation of a ticket, which is used from just before the operation finishes.
   * Throws `invalid_ticket`, `ticket_used`, `ticket_lost`, and `ticket_expired` after the deadline
   * of its job.
   */
  async redeem(text: string, request: FastifyRequest, reply: FastifyReply): Promise<Response> {
    const { deps, limitRedemption } = this.#options
    const ticket = this.#tickets.open(text)
    redeemAs(ticket.contents.requestId, request, reply)
    await limitRedemption(request, reply)
    const { operation, contents } = this.#operationOf(ticket, request)
    const { definition } = operation
    try {
      const mayBeHashed = (await definition.mayBeHashed?.(deps, contents)) ?? true
      const held = await this.#resume(ticket, mayBeHashed, { operation, request, reply })
      const verdict = await waitForVerdict(held, this.#options)
      if (held.isSetAside) definition.setAside?.(deps, contents)
      return await this.#conclude(held, verdict)
    } catch (error) {
      // A ticket that was used has ended before: it must not count again.
      if (error instanceof ApiError && isTicketEnd(error))
        definition.unanswered?.(deps, contents, clientJobOf(ticket.job, request), error)
      throw error
    }
  }

  /**
   * `onRequest` hook that refuses before anything is counted, read or asked, where the line is
   * full. A request with a device token of ours continues, because a known device has room of its
   * own.
   */
  #refuseWhenFull({ headers }: FastifyRequest): void {
    const { admission, deviceOf } = this.#options
    const refused = admission.refusalWhenFull()
    if (refused !== undefined && deviceOf?.(headers) === undefined) throw new ApiError('busy', refused)
  }

  /** Throws `invalid_ticket` for an unknown operation, and for contents of another version. */
  #operationOf({ contents: { kind, requestId: _, ...contents } }: Ticket<Contents>, request: FastifyRequest) {
    const operation = this.operations.find((each) => each.kind === kind)
    const isOurs = operation?.definition.contents.is(contents) && (this.#options.isOwn?.(contents, request) ?? true)
    if (operation === undefined || !isOurs) throw new ApiError('invalid_ticket')
    return { operation, contents }
  }

  /** Admits a request, and adds its operation's job. Throws `busy` and `queue_unavailable`. */
  async #start(call: Call<Deps>): Promise<HeldCall<Deps>> {
    const { admission, deps, passwords, config } = this.#options
    const { operation, request, reply } = call
    const preferredMs = negotiateWaitMs(request, reply, config.LOGIN_WAIT_MS)
    const admitted = admission.admit(preferredMs, isOfKnownDevice(request))
    if ('reason' in admitted) throw new ApiError('busy', admitted)
    const settle = admission.underway(admitted.lane)
    try {
      const { job, contents } = await operation.start(deps, request)
      const { lane, waitMs } = this.#placeOf(admitted, request)
      const place = { lane, waitMs, lifeMs: config.TICKET_TTL_MS, requestId: request.id }
      const submit = () => passwords.submit(job.name, job.request, place)
      const pending = await (request.inTrace?.(submit) ?? submit())
      request.jobId = pending.job.id
      const expiresAt = Date.now() + config.TICKET_TTL_MS
      const leftMs = remainingWaitMs(waitMs, reply.elapsedTime)
      return { ...call, contents, pending, waitMs: leftMs, preferredMs, expiresAt, isFirst: true }
    } finally {
      settle()
    }
  }

  /** The lane of a job, and how long its request is held. */
  #placeOf({ lane, waitMs }: Admitted, request: FastifyRequest) {
    const isBehind = request.login?.isBehind === true
    // A device may have turned out to be unknown meanwhile.
    const own = lane === 'known' && !isOfKnownDevice(request) ? 'held' : lane
    const added = isBehind ? 'behind' : own
    this.#options.metrics.jobsAdded.inc({ lane: added })
    return { lane: added, waitMs: isBehind || waitMs === 0 ? Math.ceil(this.#ticketPace.delayMs()) : waitMs }
  }

  /**
   * Waits for the job of a ticket; where it may not be hashed yet, only for what is known of it.
   * Throws `ticket_expired` after its deadline, and `ticket_lost` where its Redis server is gone.
   */
  async #resume(ticket: Ticket<Contents>, mayBeHashed: boolean, call: Call<Deps>): Promise<HeldCall<Deps>> {
    const { passwords, config } = this.#options
    const { kind, requestId, ...contents } = ticket.contents
    const { job, expiresAt } = ticket
    const leftMs = job.deadline - passwords.now(job)
    if (leftMs <= 0 || isExpired(ticket)) throw new ApiError('ticket_expired')
    call.request.jobId = job.id
    const preferredMs = negotiateWaitMs(call.request, call.reply, config.LOGIN_WAIT_MS)
    const waitMs = mayBeHashed ? Math.min(preferredMs, leftMs) : 0
    const pending = await passwords.resume(job, waitMs, mayBeHashed)
    if (pending.isLost) {
      await pending.answer({ waitMs: 0 })
      throw new ApiError('ticket_lost')
    }
    return { ...call, contents, pending, waitMs, preferredMs, expiresAt, isFirst: false }
  }

  /** Finishes an operation; a ticket without a verdict or database: nothing is hashed twice. */
  async #conclude(held: HeldCall<Deps>, verdict: Verdict | undefined): Promise<Response> {
    if (verdict === undefined) return await this.#ticketFor(held)
    const { operation, request, contents, pending, expiresAt, isFirst } = held
    const answered = { ...clientJobOf(pending.job, request), verdict }
    const finish = () => operation.finish(this.#options.deps, contents, answered)
    try {
      return isFirst ? await finish() : await this.#usedTickets.useFor(pending.job.id, expiresAt, orLost(finish))
    } catch (error) {
      if (!isDatabaseUnavailable(error)) throw error
      request.log.error({ err: error }, 'the database cannot be used: a verdict is kept for its ticket')
      return await this.#ticketFor(held)
    }
  }

  /** Throws `busy` or `ticket_expired` where the time of the job ran out, too. */
  async #ticketFor(held: HeldCall<Deps>): Promise<Response> {
    const { passwords, line } = this.#options
    const { operation, request, reply, pending, preferredMs, expiresAt, isFirst, isSetAside } = held
    const { job } = pending
    if (passwords.now(job) >= job.deadline - CLOCK_ERROR_MS)
      throw isFirst ? tooLate(passwords) : new ApiError('ticket_expired')
    const expectation = await pending.expectation()
    const toldNow = told(expectation, preferredMs, job.deadline - passwords.now(job))
    const retryAfter = isSetAside ? Math.max(toldNow.retryAfter, UNAVAILABLE_RETRY_S) : toldNow.retryAfter
    reply.header('retry-after', retryAfter)
    const { serving, paused } = passwords.line(job)
    const contents = { ...held.contents, kind: operation.kind, requestId: toldId(request) }
    const body: FromSchema<typeof TicketBody> = {
      ...toldNow,
      ticket: this.#tickets.issue({ job, expiresAt, contents }),
      retryAfter,
      // A job that was never deferred is among the next.
      number: expectation.number ?? serving,
      line: line.nameOf(job.server ?? passwords.redis[0]?.id ?? ''),
      ...(paused ? { paused: true } : {}),
    }
    return { status: 202, headers: {}, body }
  }
}

export function send(reply: FastifyReply, { status, headers, body }: Response): FastifyReply {
  return reply.code(status).headers(headers).send(body)
}

function clientJobOf(job: JobRef, request: FastifyRequest): ClientJob {
  return { ...job, client: sessionClientOf(request), requestId: toldId(request) }
}

/** A ticket has no password to start again with. */
function orLost<T>(finish: () => Promise<T>): () => Promise<T> {
  return () =>
    finish().catch((error: unknown) => {
      throw error instanceof StartAgain ? new ApiError('ticket_lost', { cause: error }) : error
    })
}

function isOfKnownDevice({ login }: FastifyRequest): boolean {
  return typeof login?.attempt.device === 'string'
}
