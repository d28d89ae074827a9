/** POST /v1/tickets/redeem: answers as the call that issued the ticket would have. */

import type { FastifyPluginAsyncJsonSchemaToTs } from '@fastify/type-provider-json-schema-to-ts'
import { objectOf } from '@spillway/queue/wire/object-schema'
import type { FastifyPluginAsync, onRequestAsyncHookHandler } from 'fastify'
import type { Access } from '../operations/access.js'
import { type Conductor, send } from '../operations/conductor.js'
import { GOOD_FOR_S, type LineDocument } from '../operations/line-document.js'
import { type Operation, PreferHeader } from '../operations/operation.js'
import { LineBody } from '../schemas/bodies.js'
import {
  bodyProblems,
  limitProblem,
  problemResponse,
  ticketResponse,
  unauthorizedProblem,
} from '../schemas/responses.js'
import type { JsonObject } from '../schemas/schema.js'
import { documentRoute } from './documents.js'

/** The longest ticket is a registration's, with an address. */
export const TICKET_MAX_LENGTH = 2_048

interface TicketRoutesOptions extends Pick<Access<unknown>, 'security'> {
  /** A ticket answers as one of its operations. */
  conductor: Pick<Conductor<never>, 'operations' | 'redeem'>
  /** Authenticates redemptions [everybody may redeem]. */
  onRequest?: onRequestAsyncHookHandler
}

export const ticketRoutes: FastifyPluginAsyncJsonSchemaToTs<{ Options: TicketRoutesOptions }> = async (
  app,
  { conductor, onRequest, security },
) => {
  const response: Record<number, object> = {
    ...responsesOf(conductor.operations),
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
        body: { title: 'TicketToRedeem', ...objectOf({ ticket: { type: 'string', maxLength: TICKET_MAX_LENGTH } }) },
        response,
        ...(security === undefined ? {} : { security }),
      },
      ...(onRequest === undefined ? {} : { onRequest }),
    },
    async (request, reply) => send(reply, await conductor.redeem(request.body.ticket, request, reply)),
  )
}

/** The responses of all operations, because redeeming a ticket can end in any of them. */
function responsesOf(operations: readonly Operation<never>[]): Record<number, object> {
  const answers = operations.map(({ definition: { success } }) => success)
  const statuses = [...new Set(answers.map(({ status }) => status))].map((status) => {
    const bodies = answers.filter((answer) => answer.status === status).map(({ body }) => body.json)
    return [status, eitherOf(bodies)]
  })
  const problems = operations.map(({ definition }) => definition.problems)
  return Object.assign(Object.fromEntries(statuses), ...problems)
}

function eitherOf(bodies: JsonObject[]): JsonObject {
  const [only] = bodies
  if (only !== undefined && bodies.length === 1) return only
  if (bodies.some(({ type }) => type !== 'null')) return { anyOf: bodies }
  // Answers without a body differ only in their descriptions.
  return { type: 'null', description: bodies.map(({ description }) => description).join('; or: ') }
}

// GET /v1/line: how far the line has come, from memory, the same for everybody.

interface LineRouteOptions extends Pick<Access<unknown>, 'security'> {
  line: LineDocument
  /** Authenticates readers [everybody may read]. */
  onRequest?: onRequestAsyncHookHandler
}

export const lineRoutes: FastifyPluginAsync<LineRouteOptions> = async (app, { line, onRequest, security }) => {
  app.get('/v1/line', {
    ...documentRoute(() => line.read(), GOOD_FOR_S, onRequest === undefined ? [] : [onRequest]),
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
