/**
 * An operation is an endpoint whose answer needs a password job. One definition determines everything about it: the route and its
 * OpenAPI description, the contents of its tickets, the response to a verdict, and its label in metrics.
 */
import type { Verdict } from '@spillway/client/queue-client'
import type { FastifyInstance } from 'fastify'
import { ApiError } from '../problems/errors.js'
import { bodyProblems, limitProblem, ticketResponse } from '../schemas/responses.js'
import type { JsonObject, Schema } from '../schemas/schema.js'
import type { AnsweredJob, Finish, Hold, Resumed, Submit, Submitted } from '../waiting/hold.js'
import { PreferHeader } from '../waiting/prefer.js'
import type { TicketContents } from '../waiting/tickets.js'
import type { Access } from './access.js'
import { tooLongForBcrypt } from './new-password.js'

/** A job that no worker refused. */
export interface Job extends AnsweredJob {
  verdict: Exclude<Verdict, { kind: 'refused' }>
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
  /** The headers of a successful response. */
  headersOf?(deps: Deps, answer: Answer): Record<string, string>
  /** Responses in addition to those of every operation: 202, 400, 413, 415, 422, 429, 500 and 503. */
  problems: Record<number, object>
  /** The field with the password to hash, for errors [password]. */
  newPasswordField?: string
  /** The error for a stored hash that no worker verifies. */
  unsupportedHash(): ApiError
  /** Checks all that needs no hash, then submits the job. Throws an {@link ApiError} to refuse the request. */
  start(deps: Deps, input: { body: Body; caller: Caller }, submit: Submit): Promise<Submitted<Contents>>
  /** Resolves with the body of the successful response; throws an {@link ApiError} otherwise. */
  finish(deps: Deps, contents: Contents, job: Job): Promise<Answer>
  /** Called when the operation has succeeded, or with the error that refuses it. */
  ended?(deps: Deps, contents: Contents, job: AnsweredJob, refused?: ApiError): void
  /** Called when a ticket has ended without an answer. */
  unanswered?(deps: Deps, contents: Contents): void
}

export interface Operation<Deps> {
  kind: string
  answer: { status: number; body: JsonObject }
  problems: Record<number, object>
  /** Registers the route. */
  mount(app: FastifyInstance, deps: Deps & { hold: Hold }): void
  /** Returns how to end the operation from the contents of a ticket; undefined when they do not fit the schema. */
  resume(deps: Deps, contents: unknown): Resumed | undefined
}

export function buildOperation<Deps, Caller, Body, Contents extends object, Answer>(
  definition: OperationDefinition<Deps, Caller, Body, Contents, Answer>,
): Operation<Deps> {
  const { kind, problems, access } = definition
  const answer = { status: definition.answer.status, body: definition.answer.body.json }

  async function answerTo(deps: Deps, contents: Contents, { verdict, ...job }: AnsweredJob): Promise<Answer> {
    if (verdict.kind !== 'refused') return await definition.finish(deps, contents, { ...job, verdict })
    if (verdict.code === 'unsupported_hash') throw definition.unsupportedHash()
    if (verdict.code === 'unsupported_password') throw tooLongForBcrypt(definition.newPasswordField ?? 'password')
    throw new ApiError('internal_error', { cause: new Error(`worker: ${verdict.code}`) })
  }

  function finishWith(deps: Deps, contents: Contents): Finish {
    return async (job) => {
      try {
        const body = await answerTo(deps, contents, job)
        definition.ended?.(deps, contents, job)
        return { status: answer.status, headers: definition.headersOf?.(deps, body) ?? {}, body }
      } catch (error) {
        if (error instanceof ApiError && error.status < 500) definition.ended?.(deps, contents, job, error)
        throw error
      }
    }
  }

  return {
    kind,
    answer,
    problems,
    mount(app, deps) {
      const { method, url, operationId, tags, summary, description } = definition
      const body = definition.body.json
      const response: Record<number, object> = {
        [answer.status]: answer.body,
        202: ticketResponse,
        ...problems,
        429: limitProblem,
        ...bodyProblems,
      }
      const headers = { ...PreferHeader, properties: { ...PreferHeader.properties, ...definition.headers } }
      app.route({
        method,
        url,
        schema: {
          ...{ operationId, tags, summary, headers, body, response },
          ...(description === undefined ? {} : { description }),
          ...(access.security === undefined ? {} : { security: access.security }),
        },
        ...access.hooks(app),
        handler: async (request, reply) => {
          if (!definition.body.is(request.body)) throw new ApiError('invalid_request')
          const input = { body: request.body, caller: access.callerOf(request) }
          const { status, headers, body } = await deps.hold.begin(request, reply, async (submit) => {
            const { contents, pending } = await definition.start(deps, input, submit)
            return { kind, contents, pending, finish: finishWith(deps, contents) }
          })
          return reply.code(status).headers(headers).send(body)
        },
      })
    },
    resume(deps, contents) {
      if (!definition.contents.is(contents)) return undefined
      return { finish: finishWith(deps, contents), unanswered: () => definition.unanswered?.(deps, contents) }
    },
  }
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
