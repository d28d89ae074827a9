/**
 * The flow of every request that needs a password job. A first request is admitted, started,
 * submitted and held; then it is finished, or answered with a ticket. A redemption finds the job of
 * its ticket, or starts the request again if there is no job. Then it is held, and finished or
 * answered with the next ticket. No other code admits, submits, waits or issues tickets.
 */
import { EventEmitter, once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { againIfLost, isDatabaseUnavailable, mayHaveHappened } from '@spillway/prisma'
import { type Admitted, type Expected, type JobRef, PasswordClientError, type Result } from '@spillway/queue/client'
import { pacedMs, presentMs } from '@spillway/queue/order'
import { jobOfTicket, type Ticket, Tickets, ticketTimes } from '@spillway/queue/tickets'
import { newId } from '@spillway/queue/wire/id'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { FromSchema } from 'json-schema-to-ts'
import type { GatewayConfig } from '../config.js'
import { ApiError } from '../http/problems.js'
import { redeemAs, toldId } from '../http/requests.js'
import type { LimitRequest } from '../limits/limits.js'
import type { TicketBody } from '../schemas/responses.js'
import { sessionClientOf } from '../sessions/sessions.js'
import type { Headers } from '../sessions/token-carrier.js'
import type { Opened } from '../start.js'
import {
  type Ending,
  type Endpoint,
  negotiateHoldMs,
  type Origin,
  routeOf,
  type Started,
  type WantedJob,
} from './endpoint.js'
import { tooLongForBcrypt } from './new-password.js'
import { UsedTickets } from './used-tickets.js'

/** What a ticket contains: the request, and what `start` remembered. */
interface Contents {
  kind: string
  body: unknown
  remembered: object
  /** The id of the request that got the ticket. */
  requestId: string
  /** Whether it may have been finished: the answer of the database was lost [false]. */
  mayBeDone?: boolean
}

function isContents(contents: unknown): contents is Contents {
  if (typeof contents !== 'object' || contents === null || !('body' in contents)) return false
  if (!('kind' in contents) || !('requestId' in contents) || !('remembered' in contents)) return false
  const { kind, requestId, remembered } = contents
  return typeof kind === 'string' && typeof requestId === 'string' && typeof remembered === 'object' && !!remembered
}

/** What happens in flows. No flow depends on who listens. */
export interface FlowEvents {
  /** A job was added, to its place (see the queue's order.ts). `first` is for known devices. */
  added: [place: 'first' | 'open' | 'ticketed']
  /** The client of a first request disconnected before its job began. */
  removed: []
  held: [hold: { kind: string; outcome: HoldOutcome; ms: number }]
}

/** How a hold ended: by the result, by a ticket, by the client, or by a failure. */
type HoldOutcome = 'answered' | 'ticket' | 'client_gone' | 'failed'

/** The clock is an estimate, so some milliseconds may be left after a hold until the deadline. */
const CLOCK_ERROR_MS = 100

interface FlowOptions<Deps> {
  config: GatewayConfig
  deps: Deps
  endpoints: readonly Endpoint<Deps>[]
  /** Limits redemptions of our tickets. Forged tickets are rejected before this, without Redis. */
  limitRedemption: LimitRequest
  /** Whether a ticket belongs to its caller [anybody may redeem it]. */
  isOwn?(remembered: object, request: FastifyRequest): boolean
}

interface Answer {
  status: number
  headers: Headers
  body: unknown
}

/** A request within its flow. */
interface Run<Deps> {
  endpoint: Endpoint<Deps>
  request: FastifyRequest
  reply: FastifyReply
  ticket: Ticket<Contents>
  /** How long its client asked to be held, and how long it is held, in milliseconds. */
  holdMs: number
  heldMs: number
}

export class Flow<Deps extends Opened> {
  readonly events = new EventEmitter<FlowEvents>()
  readonly endpoints: readonly Endpoint<Deps>[]
  readonly #options: FlowOptions<Deps>
  readonly #deps: Deps
  readonly #tickets: Tickets<Contents>
  readonly #usedTickets: UsedTickets

  constructor(options: FlowOptions<Deps>) {
    this.endpoints = options.endpoints
    this.#options = options
    this.#deps = options.deps
    this.#tickets = new Tickets(options.deps.keyring, 'ticket', isContents)
    this.#usedTickets = new UsedTickets(options.deps.database, options.deps.log)
  }

  mount(app: FastifyInstance): void {
    app.addHook('onClose', async () => this.#usedTickets.close())
    for (const endpoint of this.endpoints) {
      app.route({
        ...routeOf(endpoint, this.#deps),
        handler: async (request, reply) => send(reply, await this.first(endpoint, request, reply)),
      })
    }
  }

  /** A first request. Throws `busy` before it is started, `unavailable`, and refusals of its endpoint. */
  async first(endpoint: Endpoint<Deps>, request: FastifyRequest, reply: FastifyReply): Promise<Answer> {
    const holdMs = negotiateHoldMs(request, reply, this.#options.config.loginWaitMs)
    const isKnownDevice = this.#deps.guessing.showsKnownDevice(request)
    const admitted = this.#admit(holdMs, isKnownDevice)
    try {
      const { body } = request
      if (!endpoint.route.body.is(body)) throw new ApiError('invalid_request')
      const started = await endpoint.start(this.#deps, { body, request, reply, earlier: undefined })
      const ticket = this.#newTicket(endpoint, request, started)
      const run: Run<Deps> = { endpoint, request, reply, holdMs, heldMs: holdMs, ticket }
      const { job } = started
      if (job === undefined) {
        admitted.end()
        return await this.#ticketWithoutJob(run)
      }
      const submit = async () => this.#submit(run, job, this.#confirmed(admitted, started, holdMs))
      const expected = await submit().catch((error: unknown) => this.#unanswered(run, error))
      const result = await this.#hold(run, expected).catch((error: unknown) => this.#leftFirst(run, error))
      // A client that asked for a ticket gets one, even if the result is available.
      if (result === undefined || run.heldMs === 0) return this.#ticketOf(run)
      return await this.#finish(run, expected.job, result).catch((error: unknown) => this.#notFinished(run, error))
    } finally {
      admitted.end()
    }
  }

  /**
   * A redemption. Throws `invalid_ticket`, `ticket_expired`, `ticket_used` if the request was
   * finished before, and all errors of a first request.
   */
  async redeem(text: string, request: FastifyRequest, reply: FastifyReply): Promise<Answer> {
    const run = await this.#opened(text, request, reply)
    const expected = (await this.#find(run)) ?? (await this.#startAgain(run))
    if (expected === undefined) return await this.#ticketWithoutJob(run)
    const result = await this.#hold(run, expected).catch((error: unknown) => this.#left(expected.job, error))
    if (result === undefined) return this.#ticketOf(run)
    const { id, expiresAt } = run.ticket
    const finish = () => this.#finish(run, expected.job, result)
    return await this.#usedTickets
      .useFor(id, expiresAt, finish)
      .catch((error: unknown) => this.#notFinished(run, error))
  }

  // The steps of both, in order.

  /** The place of a first request. Throws `busy`. */
  #admit(holdMs: number, isKnownDevice = false): Admitted {
    const { passwords } = this.#deps
    const wanted = this.#wantedPlace(holdMs, false)
    const admitted = isKnownDevice ? passwords.admitKnownDevice(wanted) : passwords.admit(wanted)
    if ('reason' in admitted) throw new ApiError('busy', admitted)
    return admitted
  }

  #wantedPlace(holdMs: number, goesBeforeTickets: boolean) {
    const { ticketTtlMs: ticketLifeMs, loginWaitMs: usualMs } = this.#options.config
    // With a hold of 0, a client would only get tickets, although its result comes soon.
    return { holdMs: holdMs === 0 ? usualMs : holdMs, ticketLifeMs, goesBeforeTickets }
  }

  /** The place of a started request. Its device may be unknown to its account after all. */
  #confirmed(admitted: Admitted, { isKnownDevice = false }: Started<object>, holdMs: number): Admitted {
    if (!admitted.goesFirst || isKnownDevice) return admitted
    admitted.end()
    return this.#admit(holdMs)
  }

  #newTicket(
    { route: { kind } }: Endpoint<Deps>,
    request: FastifyRequest,
    { job, remembered }: Started<object>,
  ): Ticket<Contents> {
    const { ticketTtlMs } = this.#options.config
    return {
      id: newId(),
      name: job?.name ?? 'verify',
      attempt: job === undefined ? 0 : 1,
      deadline: this.#deps.passwords.now() + ticketTtlMs,
      expiresAt: Date.now() + ticketTtlMs,
      contents: { kind, body: request.body, remembered, requestId: toldId(request) },
    }
  }

  /** Opens a ticket, and counts its redemption. */
  async #opened(text: string, request: FastifyRequest, reply: FastifyReply): Promise<Run<Deps>> {
    const { limitRedemption, isOwn } = this.#options
    const { passwords } = this.#deps
    const ticket = this.#tickets.open(text)
    const { kind, remembered, requestId } = ticket.contents
    const endpoint = this.endpoints.find(({ route }) => route.kind === kind)
    const isOurs = endpoint?.remembered.is(remembered) && (isOwn?.(remembered, request) ?? true)
    if (endpoint === undefined || !isOurs) throw new ApiError('invalid_ticket')
    redeemAs(requestId, request, reply)
    await limitRedemption(request, reply)
    if (ticket.number !== undefined) passwords.estimates.numbered(ticket.number)
    const holdMs = negotiateHoldMs(request, reply, this.#options.config.loginWaitMs)
    const run: Run<Deps> = { endpoint, request, reply, ticket, holdMs, heldMs: holdMs }
    if (passwords.now() >= ticket.deadline) this.#unanswered(run, new ApiError('ticket_expired'))
    return run
  }

  /** Finds the job of a ticket, and marks its client as present. Undefined if the job is gone. */
  async #find({ ticket, holdMs }: Run<Deps>): Promise<Expected | undefined> {
    const { passwords } = this.#deps
    // An earlier redemption of the ticket may have started a request that had no job.
    for (let attempt = Math.max(1, ticket.attempt); ; attempt += 1) {
      const job = jobOfTicket(ticket, attempt)
      // The mark comes first, because a worker that takes the job now must not skip it.
      const marking = passwords.present(job, presentMs(holdMs, true), ticket.number)
      const [, found] = await Promise.all([marking, passwords.resume(job)])
      if (found.state === 'result' || found.state === 'waiting') {
        ticket.attempt = attempt
        return found
      }
      found.end()
      if (found.state === 'absent') return undefined
      // It was skipped. An earlier copy of the ticket may have started the next attempt.
      ticket.attempt = attempt + 1
    }
  }

  /**
   * Starts the request of a ticket again, with what the ticket contains; undefined where it may not
   * be started yet, or has no place. Everything that `start` checks is checked again.
   */
  async #startAgain(run: Run<Deps>): Promise<Expected | undefined> {
    const { endpoint, request, reply, ticket, holdMs } = run
    const { body, remembered: earlier } = ticket.contents
    if (!endpoint.route.body.is(body)) throw new ApiError('invalid_ticket')
    const admitted = this.#deps.passwords.admit(this.#wantedPlace(holdMs, ticket.attempt > 0))
    if ('reason' in admitted) return undefined
    try {
      const { remembered, job } = await endpoint.start(this.#deps, { body, request, reply, earlier })
      ticket.contents = { ...ticket.contents, remembered }
      if (job === undefined) return undefined
      ticket.attempt = Math.max(1, ticket.attempt)
      return await this.#submit(run, job, admitted)
    } finally {
      admitted.end()
    }
  }

  async #submit(run: Run<Deps>, { name, request: wanted }: WantedJob, admitted: Admitted): Promise<Expected> {
    const { passwords, paceMs = pacedMs } = this.#deps
    const { request, ticket, holdMs } = run
    ticket.name = name
    // A ticket that is issued at once is held for less time.
    if (admitted.place === 'ticketed') run.heldMs = paceMs(holdMs)
    const comesBack = holdMs === 0 || request.firstId !== undefined
    const submission = {
      job: { ...jobOfTicket(ticket, ticket.attempt), name },
      request: wanted,
      admitted,
      presentMs: presentMs(run.heldMs, comesBack),
      heldMs: run.heldMs,
      requestId: toldId(request),
    }
    const submit = () => passwords.submit(submission)
    const submitted = await (request.inTrace?.(submit) ?? submit())
    ticket.number = submitted.number
    this.events.emit('added', admitted.goesFirst ? 'first' : admitted.place)
    return submitted
  }

  /**
   * Waits for the result, and until an answer can be written. Undefined if the hold ends first.
   * Throws `wait_aborted` if the client disconnects.
   */
  async #hold(run: Run<Deps>, expected: Expected): Promise<Result | undefined> {
    const { request, reply, endpoint, heldMs } = run
    const heldAt = performance.now()
    request.jobId = expected.job.id
    request.work?.pause()
    let outcome: HoldOutcome = 'failed'
    try {
      // A hold of 0 stays 0. Any other hold stays above 0, even if the job was added late.
      const leftMs = Math.min(heldMs - reply.elapsedTime, run.ticket.deadline - this.#deps.passwords.now())
      const waitMs = heldMs === 0 ? 0 : Math.max(1, leftMs)
      const result = await expected.result(waitMs, request.clientGone)
      await untilWritable(request, reply)
      outcome = result === undefined ? 'ticket' : 'answered'
      return result
    } catch (error) {
      if (isClientGone(error)) outcome = 'client_gone'
      throw error
    } finally {
      request.work?.resume()
      this.events.emit('held', { kind: endpoint.route.kind, outcome, ms: performance.now() - heldAt })
    }
  }

  /** Removes a job whose client has disconnected. It was not hashed, and does not count. */
  async #leftFirst(run: Run<Deps>, error: unknown): Promise<never> {
    if (isClientGone(error) && (await this.#deps.passwords.remove(jobOfTicket(run.ticket, 1)))) {
      this.events.emit('removed')
      this.#unanswered(run, error)
    }
    throw error
  }

  /** The client of a redemption has disconnected, so its job may be skipped soon. */
  async #left(job: JobRef, error: unknown): Promise<never> {
    if (isClientGone(error)) await this.#deps.passwords.left(job)
    throw error
  }

  async #finish(run: Run<Deps>, job: JobRef, result: Result): Promise<Answer> {
    const { endpoint, ticket } = run
    const deps = this.#deps
    const { remembered, mayBeDone = false } = ticket.contents
    const origin = originOf(run)
    try {
      const finished = { ...origin, job, result: accepted(endpoint, result) }
      const { headers = {}, body } = await againIfLost((isAgain) =>
        endpoint.finish(deps, remembered, { ...finished, mayBeDone: mayBeDone || isAgain }),
      )
      endpoint.ended?.(deps, remembered, { ...origin, kind: 'succeeded', error: undefined })
      return { status: endpoint.route.success.status, headers, body }
    } catch (error) {
      if (error instanceof ApiError && error.status < 500 && !isTicketEnd(error))
        endpoint.ended?.(deps, remembered, { ...origin, kind: 'refused', error })
      else if (mayHaveHappened(error)) {
        ticket.contents.mayBeDone = true
        endpoint.ended?.(deps, remembered, { ...origin, kind: 'unknown', error: new ApiError('outcome_unknown') })
      }
      throw error
    }
  }

  /** While the database is away, the result is kept for the ticket, and not hashed again. */
  #notFinished(run: Run<Deps>, error: unknown): Answer {
    if (error instanceof ApiError && isTicketEnd(error)) return this.#unanswered(run, error)
    if (!isDatabaseUnavailable(error)) throw error
    run.request.log.error({ err: error }, 'the database cannot be used: a result is kept for its ticket')
    return this.#ticketOf(run)
  }

  /** A ticket for a request that may not be started yet. */
  async #ticketWithoutJob(run: Run<Deps>): Promise<Answer> {
    const { request, holdMs } = run
    const { paceMs = pacedMs } = this.#deps
    request.work?.pause()
    await sleep(paceMs(holdMs), undefined, { signal: request.clientGone }).catch(() => undefined)
    request.work?.resume()
    if (request.clientGone.aborted) return this.#unanswered(run, clientGone())
    return this.#ticketOf(run)
  }

  /** The 202 of a request whose hold has ended. Throws `ticket_expired`. */
  #ticketOf(run: Run<Deps>): Answer {
    const { passwords } = this.#deps
    const { ticket } = run
    const lifeMs = ticket.deadline - passwords.now()
    if (lifeMs <= CLOCK_ERROR_MS) return this.#unanswered(run, new ApiError('ticket_expired'))
    const { serving, paused } = passwords.estimates.line()
    const { number = serving } = ticket
    const times = ticketTimes(passwords.estimates.etaMs(ticket.number), lifeMs)
    const body: FromSchema<typeof TicketBody> = {
      ticket: this.#tickets.issue(ticket),
      number,
      position: Math.max(0, number - serving),
      ...times,
      ...(paused ? { paused: true } : {}),
    }
    return { status: 202, headers: { 'retry-after': String(times.retryAfter) }, body }
  }

  /** Ends a request without an answer. Throws the error. */
  #unanswered(run: Run<Deps>, thrown: unknown): never {
    const error = thrown instanceof ApiError && isTicketEnd(thrown) ? thrown : undefined
    const ending: Ending = { ...originOf(run), kind: 'unanswered', error }
    run.endpoint.ended?.(this.#deps, run.ticket.contents.remembered, ending)
    throw thrown
  }
}

export function send(reply: FastifyReply, { status, headers, body }: Answer): FastifyReply {
  return reply.code(status).headers(headers).send(body)
}

function originOf<Deps>({ request, ticket }: Run<Deps>): Origin {
  return { id: ticket.id, client: sessionClientOf(request), requestId: toldId(request) }
}

/** The result, unless the worker refused the job. */
function accepted<Deps>({ route }: Endpoint<Deps>, result: Result): Exclude<Result, { kind: 'refused' }> {
  if (result.kind !== 'refused') return result
  switch (result.code) {
    case 'unsupported_hash':
      throw route.unsupportedHash?.() ?? new ApiError('invalid_credentials', { reason: 'unsupported_hash' })
    case 'unsupported_password':
      throw tooLongForBcrypt(route.newPasswordField ?? 'password')
    case 'hashing_failed':
      throw new ApiError('internal_error', { cause: new Error('a worker could not hash') })
  }
}

/**
 * Resolves when an answer can be written: answers to earlier requests on the same connection come
 * first (RFC 9112, 9.3.2). Nothing is created from a result before that, because the client may
 * still disconnect.
 */
async function untilWritable({ clientGone: gone }: FastifyRequest, { raw }: FastifyReply): Promise<void> {
  if (raw.socket === null) await once(raw, 'socket', { signal: gone }).catch(() => undefined)
  if (gone.aborted) throw clientGone()
}

function clientGone(): PasswordClientError {
  return new PasswordClientError('wait_aborted', 'the client went away')
}

function isClientGone(error: unknown): boolean {
  return error instanceof PasswordClientError && error.code === 'wait_aborted'
}

/** Whether a ticket has ended without an answer, or was used before. */
function isTicketEnd({ code }: ApiError): boolean {
  return code === 'ticket_expired' || code === 'ticket_used'
}
