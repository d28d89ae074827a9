/**
 * The conductor of all operations: a request is admitted, started, waits, and is finished or gets a ticket. A ticket is read, waits, and is
 * finished or stays pending.
 */
import { once } from 'node:events'
import { type Database, isDatabaseUnavailable } from '@spillway/prisma'
import {
  type Keyring,
  type PasswordClient,
  PasswordClientError,
  type PendingJob,
  type Verdict,
} from '@spillway/queue/queue-client'
import type { Admission, Admitted } from '@spillway/queue/wait/admission'
import { Pace } from '@spillway/queue/wait/refusal-pace'
import { type Ticket, Tickets, told } from '@spillway/queue/wait/tickets'
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { FromSchema } from 'json-schema-to-ts'
import { ApiError } from '../plugins/errors.js'
import type { LimitRequest } from '../plugins/limits.js'
import type { DeviceOf } from '../plugins/load-shedding/preference.js'
import type { GatewayMetrics, WaitOutcome } from '../plugins/metrics.js'
import type { TicketBody } from '../schemas/bodies.js'
import { sessionClientOf } from '../sessions/session-opening.js'
import type { LineDocument } from './line-document.js'
import { type JobRequest, type Operation, type Response, StartAgain } from './operation.js'
import { UsedTickets } from './used-tickets.js'
import { parsePrefer, preferredWaitMs, remainingWaitMs } from './wait-times.js'

/** The contents of a ticket: the kind of its operation, and what that needs besides the verdict. */
interface Contents {
  kind: string
}

function isContents(contents: unknown): contents is Contents {
  return typeof contents === 'object' && contents !== null && 'kind' in contents && typeof contents.kind === 'string'
}

/** The clock is an estimate: after a wait until the deadline it may be some milliseconds before it. */
const CLOCK_ERROR_MS = 100
/** When the next question about a password without a verdict is worth its while. Less than a ticket's client may stay away. */
const UNAVAILABLE_RETRY_S = 5
const RETRY_MAX_S = 60

export interface ConductorOptions<Deps> {
  /** What operations are made of. */
  deps: Deps
  operations: readonly Operation<Deps>[]
  passwords: PasswordClient
  database: Database
  keyring: Keyring
  admission: Admission
  metrics: GatewayMetrics
  log: FastifyBaseLogger
  line: LineDocument
  /** The known device that a request shows a token of [no device is known]. */
  deviceOf?: DeviceOf
  /** Requests that this gateway answers in a second. */
  perSecond(): number
  config: { LOGIN_WAIT_MS: number; TICKET_TTL_MS: number }
  /** Counts the redemption of a ticket that is ours: one that was made up is refused from memory. */
  limitRedemption: LimitRequest
  /** Whether a ticket is its caller's own [anybody may redeem it]. */
  isOwn?(contents: object, request: FastifyRequest): boolean
}

/** A job, and the operation that its verdict finishes. */
interface Task<Deps> {
  operation: Operation<Deps>
  contents: object
}

/** A request that waits for a job. */
interface Held {
  pending: PendingJob
  /** How long it waits, in milliseconds, and how long its client would like to wait. */
  waitMs: number
  preferredMs: number
  /** When its ticket expires, in epoch milliseconds by this machine's clock. */
  expiresAt: number
  /** Whether the job was added by this request; otherwise by the request that got the ticket. */
  isFirst: boolean
  /** No verdict could be had, and the job was set aside: its client asks again later. */
  isSetAside?: true
}

export class Conductor<Deps> {
  readonly operations: readonly Operation<Deps>[]
  readonly #options: ConductorOptions<Deps>
  readonly #tickets: Tickets<Contents>
  readonly #usedTickets: UsedTickets
  /** Of tickets that would be given at once: such a ticket invites clients that throw it away and log in anew. */
  readonly #ticketPace: Pace

  constructor(options: ConductorOptions<Deps>) {
    this.operations = options.operations
    this.#options = options
    this.#tickets = new Tickets(options.keyring, 'ticket', isContents)
    this.#usedTickets = new UsedTickets(options.database, options.log)
    const { perSecond, config } = options
    this.#ticketPace = new Pace({ perSecond, longestDelayMs: config.LOGIN_WAIT_MS })
  }

  /** Registers the routes of all operations. */
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

  /** Runs an operation. Throws `busy` before any work, `unavailable`, and whatever refuses the request. */
  async run(operation: Operation<Deps>, request: FastifyRequest, reply: FastifyReply): Promise<Response> {
    try {
      return await this.#runOnce(operation, request, reply)
    } catch (error) {
      if (!(error instanceof StartAgain)) throw error
      return await this.#runOnce(operation, request, reply).catch((again: unknown) => {
        throw again instanceof StartAgain ? new ApiError('unavailable', { cause: again, retryAfterS: 1 }) : again
      })
    }
  }

  async #runOnce(operation: Operation<Deps>, request: FastifyRequest, reply: FastifyReply): Promise<Response> {
    const { admission, deps } = this.#options
    const preferredMs = this.#negotiateWaitMs(request, reply)
    const admitted = admission.admit(preferredMs, isOfKnownDevice(request))
    if ('reason' in admitted) throw new ApiError('busy', admitted)
    const settle = admission.underway(admitted.lane)
    let contents: object
    let held: Held
    try {
      const started = await operation.start(deps, request)
      contents = started.contents
      held = await this.#submit(started.job, admitted, preferredMs, request, reply)
    } finally {
      settle()
    }
    const verdict = await this.#verdictOf(operation, held, request, reply)
    return await this.#conclude({ operation, contents }, held, verdict, request, reply)
  }

  /**
   * Continues the operation of a ticket, which is used from just before the operation finishes. Throws `invalid_ticket`, `ticket_used`,
   * `ticket_lost`, and `ticket_expired` after the deadline of its job.
   */
  async redeem(text: string, request: FastifyRequest, reply: FastifyReply): Promise<Response> {
    const { deps, limitRedemption } = this.#options
    const ticket = this.#tickets.read(text)
    await limitRedemption(request, reply)
    const task = this.#taskOf(ticket, request)
    const { definition } = task.operation
    try {
      const mayBeHashed = (await definition.mayBeHashed?.(deps, task.contents)) ?? true
      const held = await this.#resume(ticket, mayBeHashed, request, reply)
      const verdict = await this.#verdictOf(task.operation, held, request, reply)
      if (held.isSetAside) definition.setAside?.(deps, task.contents)
      return await this.#conclude(task, held, verdict, request, reply)
    } catch (error) {
      // A ticket that was used has ended before: it must not count again.
      if (error instanceof ApiError && ['ticket_expired', 'ticket_lost', 'ticket_used'].includes(error.code))
        definition.unanswered?.(deps, task.contents)
      throw error
    }
  }

  /**
   * `onRequest` hook that refuses before anything is counted, read or asked, where the line is full. A request with a device token of ours
   * continues, because a known device has room of its own.
   */
  #refuseWhenFull({ headers }: FastifyRequest): void {
    const { admission, deviceOf } = this.#options
    const refused = admission.refusalWhenFull()
    if (refused !== undefined && deviceOf?.(headers) === undefined) throw new ApiError('busy', refused)
  }

  /** Throws `invalid_ticket` for an operation that this API or its caller lacks, and for contents of another version. */
  #taskOf({ contents: { kind, ...contents } }: Ticket<Contents>, request: FastifyRequest): Task<Deps> {
    const operation = this.operations.find((each) => each.kind === kind)
    const isOurs = operation?.definition.contents.is(contents) && (this.#options.isOwn?.(contents, request) ?? true)
    if (operation === undefined || !isOurs) throw new ApiError('invalid_ticket')
    return { operation, contents }
  }

  /** How long to hold a request, in milliseconds: as its client prefers, up to the limit. */
  #negotiateWaitMs(request: FastifyRequest, reply: FastifyReply): number {
    const { waitMs: preferredMs, applied } = parsePrefer(request.headers.prefer)
    const waitMs = preferredWaitMs(preferredMs, this.#options.config.LOGIN_WAIT_MS)
    if (applied !== undefined && waitMs === preferredMs) reply.header('preference-applied', applied)
    return waitMs
  }

  /** Adds the job of a request that was let in. Throws `queue_unavailable`. */
  async #submit(
    { name, request: contents }: JobRequest,
    { lane, waitMs }: Admitted,
    preferredMs: number,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<Held> {
    const { passwords, metrics, config } = this.#options
    const lifeMs = config.TICKET_TTL_MS
    const isBehind = request.login?.isBehind === true
    // A device may have turned out to be unknown meanwhile.
    const own = lane === 'known' && !isOfKnownDevice(request) ? 'held' : lane
    const added = isBehind ? 'behind' : own
    const heldMs = isBehind || waitMs === 0 ? Math.ceil(this.#ticketPace.delayMs()) : waitMs
    metrics.jobsAdded.inc({ lane: added })
    const submit = () => passwords.submit(name, contents, added, lifeMs, heldMs)
    const pending = await (request.inTrace?.(submit) ?? submit())
    request.jobId = pending.job.id
    const expiresAt = Date.now() + lifeMs
    return { pending, waitMs: remainingWaitMs(heldMs, reply.elapsedTime), preferredMs, expiresAt, isFirst: true }
  }

  /**
   * Waits for the job of a ticket; where it may not be hashed yet, only for what is known of it. Throws `ticket_expired` after its
   * deadline, and `ticket_lost` where its Redis server is gone.
   */
  async #resume(
    { job, expiresAt }: Ticket<Contents>,
    mayBeHashed: boolean,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<Held> {
    const { passwords } = this.#options
    const leftMs = job.deadline - passwords.now(job)
    if (leftMs <= 0) throw new ApiError('ticket_expired')
    request.jobId = job.id
    const preferredMs = this.#negotiateWaitMs(request, reply)
    const waitMs = mayBeHashed ? Math.min(preferredMs, leftMs) : 0
    const pending = await passwords.resume(job, waitMs, mayBeHashed)
    if (pending.isLost) {
      await pending.answer({ waitMs: 0 })
      throw new ApiError('ticket_lost')
    }
    return { pending, waitMs, preferredMs, expiresAt, isFirst: false }
  }

  /**
   * Waits for the verdict, and until an answer can be written. Undefined when the wait runs out first, and for a ticket whose job was set
   * aside. Throws when the client disconnects, whose first request takes its job back. Throws `busy` or `unavailable` for a first request
   * whose job ended without a verdict on the password.
   */
  async #verdictOf(
    { kind }: Operation<Deps>,
    held: Held,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<Verdict | undefined> {
    const { passwords, metrics } = this.#options
    const heldAt = performance.now()
    const { work } = request
    work?.pause()
    let outcome: WaitOutcome = 'failed'
    try {
      const verdict = await held.pending.answer({ waitMs: held.waitMs, signal: request.clientGone })
      await untilWritable(request, reply)
      outcome = verdict === undefined ? 'ticket' : 'answered'
      // With several Redis servers the job may be another than at first.
      request.jobId = held.pending.job.id
      // Without a wait a first request gets a ticket, even if the verdict is there already.
      if (verdict === undefined || (held.isFirst && held.waitMs === 0)) return undefined
      return await this.#believed(held, verdict)
    } catch (error) {
      if (isAbort(error)) {
        outcome = 'client_gone'
        if (held.isFirst) await this.#takeBack(held, request)
        else await passwords.left(held.pending.job)
      }
      throw error
    } finally {
      work?.resume()
      metrics.wait.observe({ operation: kind, outcome }, (performance.now() - heldAt) / 1_000)
    }
  }

  /**
   * A verdict, unless it is a refusal that says nothing of the password. A first request is then told when to come back, and its job is
   * taken back. A ticket stays pending: its job is set aside until its client comes again.
   */
  async #believed(held: Held, verdict: Verdict): Promise<Verdict | undefined> {
    if (verdict.kind !== 'refused') return verdict
    if (verdict.code === 'expired' && held.isFirst) throw this.#tooLate()
    if (verdict.code !== 'unavailable') return verdict
    held.isSetAside = true
    if (!held.isFirst) return undefined
    await this.#options.passwords.cancel(held.pending.job)
    throw new ApiError('unavailable', { reason: 'old_system', retryAfterS: UNAVAILABLE_RETRY_S })
  }

  /** Nothing was hashed for a client that went away in time: its job is taken back, and its login does not count. */
  async #takeBack({ pending }: Held, request: FastifyRequest): Promise<void> {
    const { passwords, metrics } = this.#options
    if (!(await passwords.cancel(pending.job))) return
    metrics.cancelled.inc()
    request.login?.takeBack()
  }

  /** Finishes an operation with a verdict. Gives a ticket without a verdict, or when the database cannot be used: nothing is hashed twice. */
  async #conclude(
    { operation, contents }: Task<Deps>,
    held: Held,
    verdict: Verdict | undefined,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<Response> {
    const ticket = () => this.#ticketFor({ ...contents, kind: operation.kind }, held, reply)
    if (verdict === undefined) return await ticket()
    const { job } = held.pending
    const finish = () =>
      operation.finish(this.#options.deps, contents, { ...job, verdict, client: sessionClientOf(request) })
    try {
      return held.isFirst ? await finish() : await this.#usedTickets.useFor(job.id, held.expiresAt, orLost(finish))
    } catch (error) {
      if (!isDatabaseUnavailable(error)) throw error
      request.log.error({ err: error }, 'the database cannot be used: a verdict is kept for its ticket')
      return await ticket()
    }
  }

  /** The ticket of a request whose wait ran out. Throws `busy` or `ticket_expired` where the time of the job did, too. */
  async #ticketFor(contents: Contents, held: Held, reply: FastifyReply): Promise<Response> {
    const { passwords, line } = this.#options
    const { pending, preferredMs, expiresAt, isFirst, isSetAside } = held
    const { job } = pending
    if (passwords.now(job) >= job.deadline - CLOCK_ERROR_MS)
      throw isFirst ? this.#tooLate() : new ApiError('ticket_expired')
    const expectation = await pending.expectation()
    const toldNow = told(expectation, preferredMs, job.deadline - passwords.now(job))
    const retryAfter = isSetAside ? Math.max(toldNow.retryAfter, UNAVAILABLE_RETRY_S) : toldNow.retryAfter
    reply.header('retry-after', retryAfter)
    const { serving, paused } = passwords.line(job)
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

  /** A first request whose job ended by its deadline, or would have. Nobody gets `410` who never had a ticket. */
  #tooLate(): ApiError {
    const retryAfterS = Math.ceil(this.#options.passwords.predictedWaitMs('held') / 1_000)
    return new ApiError('busy', {
      reason: 'predicted_wait',
      retryAfterS: Math.min(RETRY_MAX_S, Math.max(1, retryAfterS)),
    })
  }
}

export function send(reply: FastifyReply, { status, headers, body }: Response): FastifyReply {
  return reply.code(status).headers(headers).send(body)
}

/** A ticket has no password to start again with. */
function orLost<T>(finish: () => Promise<T>): () => Promise<T> {
  return () =>
    finish().catch((error: unknown) => {
      throw error instanceof StartAgain ? new ApiError('ticket_lost', { cause: error }) : error
    })
}

/**
 * Resolves when an answer can be written: answers of earlier requests on the same connection come first (RFC 9112, 9.3.2). Nothing is
 * created from a verdict before that, because the client may still disconnect.
 */
async function untilWritable({ clientGone }: FastifyRequest, { raw }: FastifyReply): Promise<void> {
  if (raw.socket === null) await once(raw, 'socket', { signal: clientGone }).catch(() => undefined)
  if (clientGone.aborted) throw new PasswordClientError('wait_aborted', 'the client went away')
}

function isOfKnownDevice({ login }: FastifyRequest): boolean {
  return typeof login?.attempt.device === 'string'
}

function isAbort(error: unknown): boolean {
  return error instanceof PasswordClientError && error.code === 'wait_aborted'
}
