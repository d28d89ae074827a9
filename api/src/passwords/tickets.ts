/** POST /v1/tickets/redeem gives the answer of the call that issued the ticket. GET /v1/line tells its turn. */

import type { FastifyPluginAsyncJsonSchemaToTs } from '@fastify/type-provider-json-schema-to-ts'
import type { PasswordClient } from '@spillway/queue/client'
import { objectOf } from '@spillway/queue/wire/object-schema'
import type { onRequestAsyncHookHandler } from 'fastify'
import type { FromSchema } from 'json-schema-to-ts'
import { type Document, documentRoute } from '../http/documents.js'
import {
  bodyProblems,
  LineBody,
  limitProblem,
  problemResponse,
  ticketResponse,
  unauthorizedProblem,
} from '../schemas/responses.js'
import type { Opened } from '../start.js'
import { type Endpoint, type JsonObject, PreferHeader } from './endpoint.js'
import { type Flow, send } from './flow.js'

/** A ticket contains the body of a request, sealed and in base64. */
const TICKET_SIZE = 1.5

interface TicketRoutesOptions {
  /** The flow whose endpoints issue the tickets. */
  flow: Flow<Opened>
  passwords: PasswordClient
  /** The longest body of a first request. */
  bodyLimitBytes: number
  /** Authenticates redeemers and readers [everybody may redeem and read]. */
  onRequest?: onRequestAsyncHookHandler
  security?: readonly { readonly [scheme: string]: readonly string[] }[]
}

export const ticketRoutes: FastifyPluginAsyncJsonSchemaToTs<{ Options: TicketRoutesOptions }> = async (
  app,
  { flow, passwords, bodyLimitBytes, onRequest, security },
) => {
  const line = new LineDocument(passwords)
  const secured = security === undefined ? {} : { security }
  app.get('/v1/line', {
    ...documentRoute(() => line.read(), GOOD_FOR_S, onRequest === undefined ? [] : [onRequest]),
    schema: {
      operationId: 'getLine',
      tags: ['Tickets'],
      summary: 'Get the progress of the line',
      description:
        'One answer for all clients, valid for two seconds. Clients whose turn is far away read it, and do not redeem their tickets yet. ' +
        'Redeem a ticket shortly before its turn. A late client can redeem its ticket until it expires.',
      response: {
        200: LineBody,
        304: { type: 'null', description: 'The line has not changed (RFC 9110)' },
        ...(security === undefined ? {} : { 401: unauthorizedProblem }),
      },
      ...secured,
    },
  })

  const ticketMaxLength = Math.ceil(bodyLimitBytes * TICKET_SIZE)
  const response: Record<number, object> = {
    ...responsesOf(flow.endpoints),
    202: ticketResponse,
    409: problemResponse,
    410: problemResponse,
    429: limitProblem,
    ...bodyProblems,
  }
  app.post(
    '/v1/tickets/redeem',
    {
      config: { priority: 'continued' },
      bodyLimit: 2 * ticketMaxLength,
      schema: {
        operationId: 'redeemTicket',
        tags: ['Tickets'],
        summary: 'Redeem a ticket',
        description:
          'Returns the answer once, at any gateway. While there is no answer, returns 202 with a new ticket, which replaces the old one. The ' +
          'request is held like the first one. Returns 410 if the ticket has expired. Then nothing was changed, unless the database failed meanwhile: send the first request again.',
        headers: PreferHeader,
        body: { title: 'TicketToRedeem', ...objectOf({ ticket: { type: 'string', maxLength: ticketMaxLength } }) },
        response,
        ...secured,
      },
      ...(onRequest === undefined ? {} : { onRequest }),
    },
    async (request, reply) => send(reply, await flow.redeem(request.body.ticket, request, reply)),
  )
}

/** The responses of all endpoints, because redeeming a ticket can end in any of them. */
function responsesOf(endpoints: readonly Endpoint<Opened>[]): Record<number, object> {
  const answers = endpoints.map(({ route: { success } }) => success)
  const statuses = [...new Set(answers.map(({ status }) => status))].map((status) => {
    const bodies = answers.filter((answer) => answer.status === status).map(({ body }) => body.json)
    return [status, eitherOf(bodies)]
  })
  const problems = endpoints.map(({ route }) => route.problems)
  return Object.assign(Object.fromEntries(statuses), ...problems)
}

function eitherOf(bodies: JsonObject[]): JsonObject {
  const [only] = bodies
  if (only !== undefined && bodies.length === 1) return only
  // Examples belong to a single answer: OpenAPI moves them out of its schema.
  if (bodies.some(({ type }) => type !== 'null')) return { anyOf: bodies.map(({ examples: _, ...body }) => body) }
  // Answers without a body differ only in their descriptions.
  return { type: 'null', description: bodies.map(({ description }) => description).join('; or: ') }
}

// How far the line has come: one text for everybody, made once a second; any cache may keep it.

/** How long an answer is valid, in seconds. */
const GOOD_FOR_S = 2
/** How long a text is used, in milliseconds. */
const MADE_EVERY_MS = 1_000

export class LineDocument {
  readonly #passwords: PasswordClient
  readonly #now: () => number
  #made: (Document & { atMs: number }) | undefined

  constructor(passwords: PasswordClient, now = () => performance.now()) {
    this.#passwords = passwords
    this.#now = now
  }

  read(): Document {
    const atMs = this.#now()
    if (this.#made === undefined || atMs - this.#made.atMs >= MADE_EVERY_MS) this.#made = { ...this.#make(), atMs }
    return this.#made
  }

  #make(): Document {
    const { serving, rate: perSecond, paused } = this.#passwords.estimates.line()
    const rate = Math.round(perSecond * 10) / 10
    const body: FromSchema<typeof LineBody> = {
      serving,
      rate,
      ...(paused ? { paused: true } : {}),
      until: new Date(Date.now() + GOOD_FOR_S * 1_000).toISOString(),
    }
    // Weak: two answers with one tag may differ in how long they are valid.
    return { text: JSON.stringify(body), etag: `W/"${serving}-${paused ? 'paused' : rate}"` }
  }
}
