/**
 * Headers of every public answer: no caching, which tokens and tickets require (RFC 6749, 5.1), and no MIME sniffing. Set at the start of
 * a request, so that cacheable routes can override them.
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
