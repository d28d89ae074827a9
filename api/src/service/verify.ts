/** POST /v1/passwords/verify: whether a password matches a stored hash. */
import { AnyPasswordField } from '../schemas/credentials.js'
import { schemaOf } from '../schemas/schema.js'
import { defineServiceOperation } from './operation.js'
import { PolicyField, StoredHashField } from './schemas.js'

export const verify = defineServiceOperation({
  kind: 'service_verify',
  url: '/v1/passwords/verify',
  operationId: 'verifyPassword',
  summary: 'Verify a password',
  description: 'A wrong password is an answer as well: 200 with `match: false`.',
  body: schemaOf({
    title: 'PasswordToVerify',
    type: 'object',
    properties: {
      password: AnyPasswordField,
      storedHash: StoredHashField,
      rehash: {
        type: 'boolean',
        default: false,
        description:
          'Whether a match of a hash that is weaker than the policy comes with a new hash to store; without a policy of the request, ' +
          'REHASH of the workers applies',
      },
      policy: PolicyField,
    },
    required: ['password', 'storedHash'],
    additionalProperties: false,
  }),
  answer: schemaOf({
    title: 'Verification',
    description: 'Whether the password matches',
    type: 'object',
    properties: {
      match: { type: 'boolean' },
      newHash: { type: 'string', description: 'Store it in place of the old one' },
    },
    required: ['match'],
    additionalProperties: false,
  }),

  job({ password, storedHash, rehash = false }, policy) {
    return { name: 'verify', request: { password, storedHash, rehash, ...(policy && { policy }) } }
  },

  finish(verdict, isAsAsked) {
    if (verdict.kind !== 'match') return { match: false }
    const { hash } = verdict
    return { match: true, ...(hash !== undefined && isAsAsked(hash) && { newHash: hash }) }
  },
})
