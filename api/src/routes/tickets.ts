/** POST /v1/tickets/redeem: what the call that gave the ticket would have answered. */
import { TokenBody, UserBody } from '../operations.js'
import { PreferHeader } from '../prefer.js'
import { bodyProblems, limitProblem, problemResponse, ticketResponse, unauthorizedProblem } from '../responses.js'
import { TICKET_MAX_LENGTH } from '../tickets.js'
import type { RoutePlugin } from './deps.js'

export const ticketRoutes: RoutePlugin = async (app, { hold }) => {
  app.post(
    '/v1/tickets/redeem',
    {
      config: { priority: 'promised' },
      schema: {
        operationId: 'redeemTicket',
        tags: ['Tickets'],
        summary: 'Redeem a ticket',
        description: 'Answers once, at any gateway; 202 while the answer is not there yet. Held as the first call was.',
        headers: PreferHeader,
        body: {
          title: 'TicketToRedeem',
          type: 'object',
          properties: { ticket: { type: 'string', maxLength: TICKET_MAX_LENGTH } },
          required: ['ticket'],
          additionalProperties: false,
        },
        response: {
          200: TokenBody,
          201: UserBody,
          202: ticketResponse,
          204: { type: 'null', description: 'The password was changed' },
          401: unauthorizedProblem,
          409: problemResponse,
          410: problemResponse,
          429: limitProblem,
          ...bodyProblems,
        },
      },
      onRequest: app.limitRedeemAddress,
    },
    async (request, reply) => {
      const { status, body } = await hold.redeem(request, reply, request.body.ticket)
      return reply.code(status).send(body)
    },
  )
}
