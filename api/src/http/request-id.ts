/**
 * The id of a request is in its answer, log lines, job, audit event and ticket. A proxy of
 * TRUST_PROXY may choose it; any other request gets a new UUID. The redemption of a ticket answers
 * with the id of the request that got the ticket, so a login has one id.
 */
import type { IncomingMessage } from 'node:http'
import { newId } from '@spillway/queue/wire/id'
import { REQUEST_ID } from '@spillway/queue/wire/job'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { AddressRanges } from './client-network.js'

/** In lower case, as Node names it. */
export const REQUEST_ID_HEADER = 'x-request-id'
const isRequestId = new RegExp(REQUEST_ID)

/** Chooses the id of a request, as Fastify's `genReqId`. */
export function requestIds(proxies: AddressRanges): (request: IncomingMessage) => string {
  return ({ headers, socket }) => {
    const given = headers[REQUEST_ID_HEADER]
    const isOurForm = typeof given === 'string' && isRequestId.test(given)
    return isOurForm && proxies.has(socket.remoteAddress ?? '') ? given : newId()
  }
}

/** Answers that run no hooks set the header themselves. */
export const requestIdPlugin = fp(
  async (app: FastifyInstance) => {
    app.decorateRequest('firstId')
    app.addHook('onRequest', (request, reply, next) => {
      reply.header(REQUEST_ID_HEADER, request.id)
      next()
    })
  },
  { name: 'request-id' },
)

/** The id in the answer and in the audit. */
export function toldId({ id, firstId = id }: FastifyRequest): string {
  return firstId
}

export function redeemAs(firstId: string, request: FastifyRequest, reply: FastifyReply): void {
  request.firstId = firstId
  reply.header(REQUEST_ID_HEADER, firstId)
}

declare module 'fastify' {
  interface FastifyRequest {
    /** For a redemption: the id of the request that got the ticket. */
    firstId?: string
  }
}
