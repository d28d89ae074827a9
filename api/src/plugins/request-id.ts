/**
 * The id of a request, by which its answer, log lines, job, audit event and ticket are found. A
 * proxy of TRUST_PROXY may choose it; any other request gets a new one, a UUID. The redemption of a
 * ticket answers with the id of the request that got the ticket: a login has one id.
 */
import { newId } from '@spillway/queue/wire/id'
import { REQUEST_ID } from '@spillway/queue/wire/job'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { AddressRanges } from './client-network.js'
import { REQUEST_ID_HEADER } from './problems.js'
import { interceptRequests } from './server-options.js'

const isRequestId = new RegExp(REQUEST_ID)

/**
 * Puts the id into the headers of each request and its answer. Answers without hooks set it by
 * themselves: a header set on Node's response would make Node check each header of each answer.
 */
export const requestIdPlugin = fp(
  async (app: FastifyInstance, { trustedProxies }: { trustedProxies: readonly string[] }) => {
    const proxies = new AddressRanges(trustedProxies)
    app.decorateRequest('firstId')
    // The last interceptor sees requests first.
    app.addHook('onReady', async () =>
      interceptRequests(app, (request, _response, next) => {
        const given = request.headers[REQUEST_ID_HEADER]
        const isOurForm = typeof given === 'string' && isRequestId.test(given)
        const id = isOurForm && proxies.has(request.socket.remoteAddress ?? '') ? given : newId()
        request.headers[REQUEST_ID_HEADER] = id
        next()
      }),
    )
    app.addHook('onRequest', (request, reply, next) => {
      reply.header(REQUEST_ID_HEADER, request.id)
      next()
    })
  },
  { name: 'request-id' },
)

export function redeemAs(firstId: string, request: FastifyRequest, reply: FastifyReply): void {
  request.firstId = firstId
  reply.header(REQUEST_ID_HEADER, firstId)
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Of a redemption: the id of the request that got the ticket. */
    firstId?: string
  }
}
