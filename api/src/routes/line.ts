/** GET /v1/line: how far the line has come, from memory, the same for everybody. */
import type { FastifyPluginAsync } from 'fastify'
import { LineBody } from '../schemas/bodies.js'
import { GOOD_FOR_S, type LineDocument } from '../waiting/line-document.js'

export const lineRoutes: FastifyPluginAsync<{ document: LineDocument }> = async (app, { document }) => {
  app.get(
    '/v1/line',
    {
      config: { priority: 'always' },
      schema: {
        operationId: 'getLine',
        tags: ['Tickets'],
        summary: 'How far the line has come',
        description:
          'One answer for everybody, good for two seconds. Clients whose turn is far away read this and do not redeem their tickets yet. ' +
          'Near their turn they redeem. From its turn on a ticket waits for its client.',
        response: { 200: LineBody, 304: { type: 'null', description: 'The line is where it was (RFC 9110)' } },
      },
    },
    async (request, reply) => {
      const { text, etag } = document.read()
      reply.headers({ 'cache-control': `public, max-age=${GOOD_FOR_S}`, etag })
      if (request.headers['if-none-match'] === etag) return reply.code(304).send()
      return reply.type('application/json; charset=utf-8').send(text)
    },
  )
}
