/** POST /v1/tickets/redeem: answers as the call that issued the ticket would have. */
import type { FastifyPluginAsyncJsonSchemaToTs } from '@fastify/type-provider-json-schema-to-ts'
import type { FastifyPluginAsync, onRequestAsyncHookHandler } from 'fastify'
import { documentRoute } from '../http/documents.js'
import type { Access } from '../operations/access.js'
import { type Operation, type Redemption, redeem } from '../operations/operation.js'
import { LineBody } from '../schemas/bodies.js'
import {
  bodyProblems,
  limitProblem,
  problemResponse,
  ticketResponse,
  unauthorizedProblem,
} from '../schemas/responses.js'
import type { JsonObject } from '../schemas/schema.js'
import { GOOD_FOR_S, type LineDocument } from '../waiting/line-document.js'
import { TICKET_MAX_LENGTH } from '../waiting/tickets.js'
import { PreferHeader } from '../waiting/wait-times.js'

type Responses = Pick<Operation<never>, 'answer' | 'problems'>

export interface TicketRoutesOptions extends Redemption, Pick<Access<unknown>, 'security'> {
  /** The operations of the API: a ticket answers as one of them. */
  operations: readonly Responses[]
  /** Authenticates redemptions [everybody may redeem]. */
  onRequest?: onRequestAsyncHookHandler
}

export const ticketRoutes: FastifyPluginAsyncJsonSchemaToTs<{ Options: TicketRoutesOptions }> = async (
  app,
  { operations, onRequest, security, ...redemption },
) => {
  const response: Record<number, object> = {
    ...responsesOf(operations),
    202: ticketResponse,
    409: problemResponse,
    410: problemResponse,
    429: limitProblem,
    ...bodyProblems,
  }
  app.post(
    '/v1/tickets/redeem',
    {
      config: { priority: 'promised' },
      schema: {
        operationId: 'redeemTicket',
        tags: ['Tickets'],
        summary: 'Redeem a ticket',
        description:
          'Answers once, at any gateway; 202 while the answer is not there yet. Held as the first call was. After 410 nothing was ' +
          'changed: send the first request again, also with ticket_lost, whose answer was lost with a server.',
        headers: PreferHeader,
        body: {
          title: 'TicketToRedeem',
          type: 'object',
          properties: { ticket: { type: 'string', maxLength: TICKET_MAX_LENGTH } },
          required: ['ticket'],
          additionalProperties: false,
        },
        response,
        ...(security === undefined ? {} : { security }),
      },
      ...(onRequest === undefined ? {} : { onRequest }),
    },
    async (request, reply) => {
      const { status, headers, body } = await redeem(redemption, request.body.ticket, request, reply)
      return reply.code(status).headers(headers).send(body)
    },
  )
}

/** The responses of all operations, because redeeming a ticket can end in any of them. */
function responsesOf(operations: readonly Responses[]): Record<number, object> {
  const statuses = new Set(operations.map(({ answer }) => answer.status))
  const answers = [...statuses].map((status) => {
    const bodies = operations.filter(({ answer }) => answer.status === status).map(({ answer }) => answer.body)
    return [status, eitherOf(bodies)]
  })
  return Object.assign(Object.fromEntries(answers), ...operations.map(({ problems }) => problems))
}

function eitherOf(bodies: JsonObject[]): JsonObject {
  const [only] = bodies
  if (only !== undefined && bodies.length === 1) return only
  if (bodies.some(({ type }) => type !== 'null')) return { anyOf: bodies }
  // Answers without a body differ only in their descriptions.
  return { type: 'null', description: bodies.map(({ description }) => description).join('; or: ') }
}

// GET /v1/line: how far the line has come, from memory, the same for everybody.

export interface LineRouteOptions extends Pick<Access<unknown>, 'security'> {
  document: LineDocument
  /** Authenticates readers [everybody may read]. */
  onRequest?: onRequestAsyncHookHandler
}

export const lineRoutes: FastifyPluginAsync<LineRouteOptions> = async (app, { document, onRequest, security }) => {
  app.get('/v1/line', {
    ...documentRoute(document.read, GOOD_FOR_S, onRequest === undefined ? [] : [onRequest]),
    schema: {
      operationId: 'getLine',
      tags: ['Tickets'],
      summary: 'How far the line has come',
      description:
        'One answer for everybody, good for two seconds. Clients whose turn is far away read this and do not redeem their tickets yet. ' +
        'Near their turn they redeem. From its turn on a ticket waits for its client.',
      response: {
        200: LineBody,
        304: { type: 'null', description: 'The line is where it was (RFC 9110)' },
        ...(security === undefined ? {} : { 401: unauthorizedProblem }),
      },
      ...(security === undefined ? {} : { security }),
    },
  })
}
