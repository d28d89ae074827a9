/**
 * An operation is a call whose answer takes a password job. Everything that the gateway has for it follows from one definition:
 * the route and its description, what a ticket carries, the end that the verdict leads to, and its label in metrics.
 */
import type { Database } from '@spillway/prisma'
import type { FastifyInstance } from 'fastify'
import { ApiError } from '../problems/errors.js'
import { bodyProblems, limitProblem, ticketResponse } from '../schemas/responses.js'
import type { JsonObject, Schema } from '../schemas/schema.js'
import type { Sessions } from '../sessions/sessions.js'
import type { IssueTokens } from '../sessions/tokens.js'
import type { Finish, Hold, Job, Submit, Submitted } from '../waiting/hold.js'
import { PreferHeader } from '../waiting/prefer.js'
import type { Access } from './access.js'
import type { CheckNewPassword } from './new-password.js'

/** What operations work on. */
export interface OperationDeps {
  database: Database
  sessions: Sessions
  issueTokens: IssueTokens
  checkPassword: CheckNewPassword
}

export interface OperationDefinition<Caller, Body, Contents extends object, Answer> {
  /** Its name in tickets and metrics. */
  kind: string
  method: 'POST' | 'PUT'
  url: string
  operationId: string
  tags: readonly string[]
  summary: string
  description?: string
  access: Access<Caller>
  body: Schema<Body>
  /** What finishing it takes besides the verdict. Sealed into its ticket. */
  contents: Schema<Contents>
  /** The good end. */
  answer: { status: number; body: Schema<Answer> }
  /** Responses beside those that every operation has: 202, 400, 413, 415, 422, 429, 500 and 503. */
  problems: Record<number, object>
  /** Checks what can be checked without a hash, and submits the job. Throws an {@link ApiError} for a request that is refused. */
  start(deps: OperationDeps, input: { body: Body; caller: Caller }, submit: Submit): Promise<Submitted<Contents>>
  /** Resolves with the body of the good end; throws an {@link ApiError} for any other. */
  finish(deps: OperationDeps, contents: Contents, job: Job): Promise<Answer>
}

export interface Operation {
  kind: string
  answer: { status: number; body: JsonObject }
  problems: Record<number, object>
  /** Registers its route. */
  mount(app: FastifyInstance, deps: OperationDeps & { hold: Hold }): void
  /** How to finish it with what a ticket carries, or undefined where this is not of its making. */
  resume(deps: OperationDeps, contents: unknown): Finish | undefined
}

export function defineOperation<Caller, Body, Contents extends object, Answer>(
  definition: OperationDefinition<Caller, Body, Contents, Answer>,
): Operation {
  const { kind, problems, access } = definition
  const answer = { status: definition.answer.status, body: definition.answer.body.json }

  function finishWith(deps: OperationDeps, contents: Contents): Finish {
    return async (job) => ({ status: answer.status, body: await definition.finish(deps, contents, job) })
  }

  return {
    kind,
    answer,
    problems,
    mount(app, { hold, ...deps }) {
      const { method, url, operationId, tags, summary, description } = definition
      const body = definition.body.json
      const response: Record<number, object> = {
        [answer.status]: answer.body,
        202: ticketResponse,
        ...problems,
        429: limitProblem,
        ...bodyProblems,
      }
      app.route({
        method,
        url,
        schema: {
          ...{ operationId, tags, summary, headers: PreferHeader, body, response },
          ...(description === undefined ? {} : { description }),
          ...(access.security === undefined ? {} : { security: access.security }),
        },
        onRequest: [...access.hooks, app.limitAddress],
        preHandler: app.limitAccount,
        handler: async (request, reply) => {
          if (!definition.body.is(request.body)) throw new ApiError('invalid_request')
          const input = { body: request.body, caller: access.callerOf(request) }
          const { status, body } = await hold.begin(request, reply, async (submit) => {
            const { contents, pending } = await definition.start(deps, input, submit)
            return { kind, contents, pending, finish: finishWith(deps, contents) }
          })
          return reply.code(status).send(body)
        },
      })
    },
    resume: (deps, contents) => (definition.contents.is(contents) ? finishWith(deps, contents) : undefined),
  }
}
