/**
 * An operation is an endpoint whose answer needs a password job. One definition determines everything about it: the route and its
 * OpenAPI description, the contents of its tickets, the response to a verdict, and its label in metrics.
 *
 * The conductor of all of them is here: a request is admitted, started, waits, and is finished or gets a ticket.
 */
import { StacklessError } from '@spillway/client/errors'
import type { JobRef, Verdict } from '@spillway/client/queue-client'
import { isDatabaseUnavailable } from '@spillway/prisma'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { LimitRequest } from '../limits/limit.js'
import { ApiError } from '../problems/errors.js'
import { bodyProblems, limitProblem, ticketResponse } from '../schemas/responses.js'
import type { JsonObject, Schema } from '../schemas/schema.js'
import { type SessionClient, sessionClientOf } from '../sessions/session-opening.js'
import type { Headers } from '../sessions/token-carrier.js'
import type { Held, Hold, JobRequest, Ticketed } from '../waiting/hold.js'
import type { TicketContents, Tickets, UsedTickets } from '../waiting/tickets.js'
import { PreferHeader } from '../waiting/wait-times.js'
import type { Access } from './access.js'
import { tooLongForBcrypt } from './new-password.js'

/** A job with its verdict, and the client that gets the answer. */
export interface AnsweredJob extends JobRef {
  verdict: Verdict
  client: SessionClient
}

/** A job that no worker refused. */
export interface Job extends AnsweredJob {
  verdict: Exclude<Verdict, { kind: 'refused' }>
}

/** What an operation asks of a worker, and what finishing it needs besides the verdict. */
export interface Started<Contents> {
  job: JobRequest
  contents: Contents
}

/**
 * What a verdict was about is no longer so, and nothing was changed. A request that is held starts again with what is so by now; a ticket,
 * which has no password, is lost.
 */
export class StartAgain extends StacklessError {
  override readonly name = 'StartAgain'

  constructor() {
    super('what the verdict was about has changed')
  }
}

export interface OperationDefinition<Deps, Caller, Body, Contents extends object, Answer> {
  /** The name of the operation in tickets and metrics. */
  kind: string
  method: 'POST' | 'PUT'
  url: string
  operationId: string
  tags: readonly string[]
  summary: string
  description?: string
  access: Access<Caller>
  /** Headers of the call, beside Prefer. */
  headers?: Record<string, object>
  body: Schema<Body>
  /** The data that `finish` needs besides the verdict. Sealed into the ticket. */
  contents: Schema<Contents>
  /** The successful response. */
  answer: { status: number; body: Schema<Answer>; headers?: Record<string, object> }
  /** The successful response, where a part of the answer is sent in headers. */
  sent?(deps: Deps, answer: Answer): { headers: Headers; body: Answer }
  /** Responses in addition to the common ones of all operations: 202, 400, 413, 415, 422, 429, 500 and 503. */
  problems: Record<number, object>
  /** The field with the password to hash, for errors [password]. */
  newPasswordField?: string
  /** The error for a stored hash that no worker verifies. */
  unsupportedHash(): ApiError
  /** Checks all that needs no hash, and says what is to be hashed. Throws an {@link ApiError} to refuse the request. */
  start(deps: Deps, input: { body: Body; caller: Caller }): Started<Contents> | Promise<Started<Contents>>
  /** Resolves with the body of the successful response; throws an {@link ApiError} otherwise, or {@link StartAgain}. */
  finish(deps: Deps, contents: Contents, job: Job): Promise<Answer>
  /** Called when the operation has succeeded, or with the error that refuses it. */
  ended?(deps: Deps, contents: Contents, job: AnsweredJob, refused?: ApiError): void
  /** Whether the job of a ticket may be hashed by now [it may]: until then its client waits outside. */
  mayBeHashed?(deps: Deps, contents: Contents): Promise<boolean>
  /** Called when a ticket has ended without an answer, or was used before. */
  unanswered?(deps: Deps, contents: Contents): void
  /** Called when no verdict could be had, and the ticket stays pending: nothing is hashed until its client comes again. */
  setAside?(deps: Deps, contents: Contents): void
}

/** The successful response of an operation. */
interface Finished {
  status: number
  headers: Headers
  body: unknown
}

/** How the operation of a ticket ends: with the verdict, or without one, because its time is over or its job is lost. */
export interface Resumed {
  finish(job: AnsweredJob): Promise<Finished>
  mayBeHashed(): Promise<boolean>
  unanswered(): void
  setAside(): void
}

export interface Operation<Deps> {
  kind: string
  answer: { status: number; body: JsonObject }
  problems: Record<number, object>
  /** Registers the route. */
  mount(app: FastifyInstance, deps: Deps, hold: Hold): void
  /** Returns how to end the operation from the contents of a ticket; undefined when they do not fit the schema. */
  resume(deps: Deps, contents: unknown): Resumed | undefined
}

export function buildOperation<Deps, Caller, Body, Contents extends object, Answer>(
  definition: OperationDefinition<Deps, Caller, Body, Contents, Answer>,
): Operation<Deps> {
  const { kind, problems, access } = definition
  const answer = { status: definition.answer.status, body: definition.answer.body.json }

  async function run(deps: Deps, hold: Hold, request: FastifyRequest, reply: FastifyReply, isAgain = false) {
    const { body } = request
    if (!definition.body.is(body)) throw new ApiError('invalid_request')
    const place = hold.admit(request, reply)
    let contents: Contents
    let held: Held
    try {
      const started = await definition.start(deps, { body, caller: access.callerOf(request) })
      contents = started.contents
      held = await hold.submit(place, started.job, request, reply)
    } finally {
      place.settle()
    }
    const verdict = await hold.verdictOf(kind, held, request, reply)
    const ticket = () => hold.ticketFor({ ...contents, kind }, held, reply)
    if (verdict === undefined) return await ticket()
    try {
      return await finish(deps, contents, { ...held.pending.job, verdict, client: sessionClientOf(request) })
    } catch (error) {
      if (!(error instanceof StartAgain)) return await orTicket(error, request, ticket)
      if (isAgain) throw new ApiError('unavailable', { cause: error, retryAfterS: 1 })
      return await run(deps, hold, request, reply, true)
    }
  }

  async function finish(deps: Deps, contents: Contents, job: AnsweredJob): Promise<Finished> {
    try {
      const body = await definition.finish(deps, contents, { ...job, verdict: accepted(job.verdict) })
      definition.ended?.(deps, contents, job)
      const { headers, body: sent } = definition.sent?.(deps, body) ?? { headers: {}, body }
      return { status: answer.status, headers, body: sent }
    } catch (error) {
      if (error instanceof ApiError && error.status < 500) definition.ended?.(deps, contents, job, error)
      throw error
    }
  }

  /** The verdict of a worker that did the job. */
  function accepted(verdict: Verdict): Job['verdict'] {
    if (verdict.kind !== 'refused') return verdict
    if (verdict.code === 'unsupported_hash') throw definition.unsupportedHash()
    if (verdict.code === 'expired') throw new ApiError('ticket_expired')
    if (verdict.code === 'unsupported_password') throw tooLongForBcrypt(definition.newPasswordField ?? 'password')
    throw new ApiError('internal_error', { cause: new Error(`worker: ${verdict.code}`) })
  }

  return {
    kind,
    answer,
    problems,
    mount(app, deps, hold) {
      const { method, url, operationId, tags, summary, description } = definition
      const body = definition.body.json
      const response: Record<number, object> = {
        [answer.status]: answer.body,
        202: ticketResponse,
        ...problems,
        429: limitProblem,
        ...bodyProblems,
      }
      const hooks = access.hooks(app)
      const headers = { ...PreferHeader, properties: { ...PreferHeader.properties, ...definition.headers } }
      app.route({
        method,
        url,
        schema: {
          ...{ operationId, tags, summary, headers, body, response },
          ...(description === undefined ? {} : { description }),
          ...(access.security === undefined ? {} : { security: access.security }),
        },
        ...hooks,
        onRequest: [hold.refuseWhenFull, ...hooks.onRequest],
        handler: async (request, reply) => {
          const { status, headers, body } = await run(deps, hold, request, reply)
          return reply.code(status).headers(headers).send(body)
        },
      })
    },
    resume(deps, contents) {
      if (!definition.contents.is(contents)) return undefined
      return {
        finish: (job) => finish(deps, contents, job),
        mayBeHashed: async () => (await definition.mayBeHashed?.(deps, contents)) ?? true,
        unanswered: () => definition.unanswered?.(deps, contents),
        setAside: () => definition.setAside?.(deps, contents),
      }
    },
  }
}

/** A verdict outlives a stutter of the database: its client gets a ticket, with which nothing is hashed again. Rethrows other errors. */
async function orTicket(error: unknown, { log }: FastifyRequest, ticket: () => Promise<Ticketed>): Promise<Ticketed> {
  if (!isDatabaseUnavailable(error)) throw error
  log.error({ err: error }, 'the database cannot be used: a verdict is kept for its ticket')
  return await ticket()
}

/**
 * How to end the operation of a ticket. Throws `invalid_ticket` for an operation that is not in the list: of another version, or of
 * another API.
 */
export function resumeOperation<Deps>(
  operations: readonly Operation<Deps>[],
  deps: Deps,
  { kind, ...contents }: TicketContents['operation'],
): Resumed {
  const resumed = operations.find((operation) => operation.kind === kind)?.resume(deps, contents)
  if (resumed === undefined) throw new ApiError('invalid_ticket')
  return resumed
}

export interface Redemption {
  hold: Hold
  tickets: Tickets
  usedTickets: UsedTickets
  /** Counts the redemption of a ticket that is ours: one that was made up is refused from memory. */
  limit: LimitRequest
  /** Returns how to end the operation of a ticket. Throws `invalid_ticket` for an operation that this API or its caller lacks. */
  resume(operation: TicketContents['operation'], request: FastifyRequest): Resumed
}

/**
 * Continues the operation of a ticket, which is used from just before the operation finishes. Throws `ticket_used`, `ticket_lost`, and
 * `ticket_expired` after the deadline of its job.
 */
export async function redeem(
  { hold, tickets, usedTickets, limit, resume }: Redemption,
  text: string,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<Finished | Ticketed> {
  const ticket = tickets.read(text)
  await limit(request, reply)
  const { job, operation } = ticket
  const resumed = resume(operation, request)
  try {
    const held = await hold.resume(ticket, request, reply, await resumed.mayBeHashed())
    const verdict = await hold.verdictOf(operation.kind, held, request, reply)
    if (held.isSetAside) resumed.setAside()
    const ticketAgain = () => hold.ticketFor(operation, held, reply)
    if (verdict === undefined) return await ticketAgain()
    const finished = usedTickets.useFor(ticket, async () => {
      try {
        return await resumed.finish({ ...job, verdict, client: sessionClientOf(request) })
      } catch (error) {
        throw error instanceof StartAgain ? new ApiError('ticket_lost', { cause: error }) : error
      }
    })
    return await finished.catch((error: unknown) => orTicket(error, request, ticketAgain))
  } catch (error) {
    // A ticket that was used has ended before: it must not count again.
    if (error instanceof ApiError && ['ticket_expired', 'ticket_lost', 'ticket_used'].includes(error.code))
      resumed.unanswered()
    throw error
  }
}
