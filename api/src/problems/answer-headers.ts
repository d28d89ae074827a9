/**
 * Headers of every public answer: kept in no cache, as tokens and tickets must not be (RFC 6749, 5.1), and taken for nothing but
 * its media type. Set first, so that what may be kept says so itself.
 */
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'

export const answerHeaders = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' } as const

export const answerHeadersPlugin = fp(
  async (app: FastifyInstance) => {
    app.addHook('onRequest', (_request, reply, next) => {
      reply.headers(answerHeaders)
      next()
    })
  },
  { name: 'answer-headers' },
)
