/** GET /.well-known/jwks.json: the public keys that access tokens are verified with (RFC 7517). */
import type { RoutePlugin } from '../operations/deps.js'

const text = { type: 'string' } as const
const KeySet = {
  title: 'KeySet',
  description: 'The public keys of access tokens (RFC 7517)',
  type: 'object',
  properties: {
    keys: {
      type: 'array',
      items: {
        title: 'PublicKey',
        type: 'object',
        properties: { kty: text, crv: text, x: text, kid: text, alg: text, use: text },
        required: ['kty', 'crv', 'x', 'kid', 'alg', 'use'],
        additionalProperties: false,
      },
    },
  },
  required: ['keys'],
  additionalProperties: false,
} as const

export const keysRoutes: RoutePlugin = async (app, { keys: { jwks } }) => {
  app.get(
    '/.well-known/jwks.json',
    {
      config: { priority: 'always' },
      schema: { operationId: 'getKeys', tags: ['Sessions'], summary: 'Public keys', response: { 200: KeySet } },
    },
    async (_request, reply) => reply.header('cache-control', 'public, max-age=300').send(jwks),
  )
}
