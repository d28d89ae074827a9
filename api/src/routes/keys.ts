/** GET /.well-known/jwks.json: the public keys that access tokens are verified with (RFC 7517). */
import type { RoutePlugin } from '../operations/deps.js'
import { algorithms } from '../sessions/signing-keys.js'

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
        properties: {
          ...{ kty: text, kid: text, use: { const: 'sig' }, alg: { enum: algorithms } },
          ...{ crv: text, x: text, y: text, n: text, e: text },
        },
        required: ['kty', 'kid', 'use', 'alg'],
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
