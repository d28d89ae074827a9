/**
 * An operation is an endpoint whose answer needs a password job. One definition gives its route and
 * OpenAPI description, the contents of its tickets, its response to a verdict, and its metrics
 * label.
 */
import { StacklessError } from '@spillway/queue/errors'
import type { JobName, JobRef, Requests, Verdict } from '@spillway/queue/queue-client'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ApiError } from '../plugins/errors.js'
import { bodyProblems, limitProblem, ticketResponse } from '../schemas/responses.js'
import type { Schema } from '../schemas/schema.js'
import type { SessionClient } from '../sessions/session-opening.js'
import type { Headers } from '../sessions/token-carrier.js'
import type { Access } from './access.js'
import { tooLongForBcrypt } from './new-password.js'

interface JobRequest<Name extends JobName = JobName> {
  name: Name
  request: Requests[Name]
}

/** A job, and the client that gets its answer. */
export interface ClientJob extends JobRef {
  client: SessionClient
  /** Of the request that had it added. */
  requestId: string
}

export interface AnsweredJob extends ClientJob {
  verdict: Verdict
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

export interface Response {
  status: number
  headers: Headers
  body: unknown
}

/**
 * What the verdict was about has changed, and nothing was done. A held request starts again; a
 * ticket, which has no password, is lost.
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
  headers?: Record<string, object>
  body: Schema<Body>
  /** The data that `finish` needs besides the verdict. Sealed into the ticket. */
  contents: Schema<Contents>
  success: { status: number; body: Schema<Answer>; headers?: Record<string, object> }
  /** The successful response, where a part of the answer is sent in headers. */
  sent?(deps: Deps, answer: Answer): { headers: Headers; body: Answer }
  /** Responses beside those of all operations: 202, 400, 413, 415, 422, 429, 500 and 503. */
  problems: Record<number, object>
  /** The field with the password to hash, for errors [password]. */
  newPasswordField?: string
  unsupportedHash(): ApiError
  /** Checks all that needs no hash, and says what to hash. Throws an {@link ApiError} to refuse. */
  start(deps: Deps, input: { body: Body; caller: Caller }): Started<Contents> | Promise<Started<Contents>>
  /** Resolves with the body of the response. Throws an {@link ApiError}, or {@link StartAgain}. */
  finish(deps: Deps, contents: Contents, job: Job): Promise<Answer>
  /** Called when the operation has succeeded, or with the error that refuses it. */
  ended?(deps: Deps, contents: Contents, job: AnsweredJob, refused?: ApiError): void
  /** Whether the job of a ticket may be hashed by now [it may]. */
  mayBeHashed?(deps: Deps, contents: Contents): Promise<boolean>
  /** Called when a ticket has ended without an answer, or was used before; also after `ended`. */
  unanswered?(deps: Deps, contents: Contents, job: ClientJob, end: ApiError): void
  /** Called when no verdict could be had: the ticket is pending until its client comes again. */
  setAside?(deps: Deps, contents: Contents): void
}

/** The headers schema of a route. Any text is valid: unknown preferences are ignored. */
export const PreferHeader = {
  type: 'object',
  properties: {
    Prefer: {
      type: 'string',
      description: '`wait=<seconds>`: hold the request for so long; `respond-async`: give a ticket at once (RFC 7240)',
    },
  },
} as const

const TICKET_ENDS: readonly string[] = ['ticket_expired', 'ticket_lost', 'ticket_used']

/** Whether a ticket has ended without an answer, or was used before. */
export function isTicketEnd({ code }: ApiError): boolean {
  return TICKET_ENDS.includes(code)
}

/** The defaults are of an operation in a list, among others. */
export class Operation<Deps, Caller = unknown, Body = unknown, Contents extends object = object, Answer = unknown> {
  readonly definition: OperationDefinition<Deps, Caller, Body, Contents, Answer>

  constructor(definition: OperationDefinition<Deps, Caller, Body, Contents, Answer>) {
    this.definition = definition
  }

  get kind(): string {
    return this.definition.kind
  }

  /** The options of its route, without a handler. */
  route(app: FastifyInstance) {
    const { method, url, operationId, tags, summary, description, access, success, problems } = this.definition
    const response: Record<number, object> = {
      [success.status]: success.body.json,
      202: ticketResponse,
      ...problems,
      429: limitProblem,
      ...bodyProblems,
    }
    const headers = { ...PreferHeader, properties: { ...PreferHeader.properties, ...this.definition.headers } }
    const schema = {
      ...{ operationId, tags, summary, headers, body: this.definition.body.json, response },
      ...(description === undefined ? {} : { description }),
      ...(access.security === undefined ? {} : { security: access.security }),
    }
    return { method, url, schema, ...access.hooks(app) }
  }

  async start(deps: Deps, request: FastifyRequest): Promise<Started<Contents>> {
    const { body } = request
    if (!this.definition.body.is(body)) throw new ApiError('invalid_request')
    return await this.definition.start(deps, { body, caller: this.definition.access.callerOf(request) })
  }

  async finish(deps: Deps, contents: Contents, job: AnsweredJob): Promise<Response> {
    const { success, sent } = this.definition
    try {
      const body = await this.definition.finish(deps, contents, { ...job, verdict: this.#accepted(job.verdict) })
      this.definition.ended?.(deps, contents, job)
      return { status: success.status, ...(sent?.(deps, body) ?? { headers: {}, body }) }
    } catch (error) {
      if (error instanceof ApiError && error.status < 500) this.definition.ended?.(deps, contents, job, error)
      throw error
    }
  }

  #accepted(verdict: Verdict): Job['verdict'] {
    if (verdict.kind !== 'refused') return verdict
    if (verdict.code === 'unsupported_hash') throw this.definition.unsupportedHash()
    if (verdict.code === 'expired') throw new ApiError('ticket_expired')
    if (verdict.code === 'unsupported_password') throw tooLongForBcrypt(this.definition.newPasswordField ?? 'password')
    throw new ApiError('internal_error', { cause: new Error(`worker: ${verdict.code}`) })
  }
}
