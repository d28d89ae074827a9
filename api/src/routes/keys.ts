/** GET /.well-known/jwks.json: the public keys that access tokens are verified with (RFC 7517). */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import Type from 'typebox'
import type { RouteDeps } from './deps.js'

const KeySet = Type.Object({
  keys: Type.Array(
    Type.Object({
      kty: Type.String(),
      crv: Type.String(),
      x: Type.String(),
      kid: Type.String(),
      alg: Type.String(),
      use: Type.String(),
    }),
  ),
})

export const keysRoutes: FastifyPluginAsyncTypebox<RouteDeps> = async (app, { jwks }) => {
  app.get(
    '/.well-known/jwks.json',
    { schema: { summary: 'Public keys', response: { 200: KeySet } } },
    async (_request, reply) => reply.header('cache-control', 'public, max-age=300').send(jwks),
  )
}
