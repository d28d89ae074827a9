/** Passwords of the service API: POST /v1/passwords/verify and /v1/passwords/hash. */
import { bcryptReadsWhole } from '@spillway/client/protocol/policy'
import type { FromSchema } from 'json-schema-to-ts'
import { tooLongForBcrypt } from '../operations/new-password.js'
import { ApiError } from '../problems/errors.js'
import { AnyPasswordField } from '../schemas/credentials.js'
import { schemaOf } from '../schemas/schema.js'
import { defineServiceOperation } from './operation.js'

const STORED_HASH_MAX_LENGTH = 1_024

const StoredHashField = {
  type: ['string', 'null'],
  maxLength: STORED_HASH_MAX_LENGTH,
  description:
    'A stored hash of any format that workers know; null for an unknown user: that takes as long as a hash of the policy, and never ' +
    'matches',
  examples: ['$2b$12$KIXQ4aVRzAN1sVYq3xXbFe1uWbFmVWWlqk4fRr3rL5y8m3Ew2S1pK'],
} as const

export const PolicyField = {
  title: 'Policy',
  description: 'Algorithm and cost of new hashes [the policy of the workers]',
  type: 'object',
  discriminator: { propertyName: 'algorithm' },
  required: ['algorithm'],
  oneOf: [
    {
      title: 'Argon2idPolicy',
      type: 'object',
      properties: {
        algorithm: { const: 'argon2id' },
        memoryKib: { type: 'integer', minimum: 8, maximum: 1_048_576, description: 'KiB, 8 or more a lane [19456]' },
        time: { type: 'integer', minimum: 1, maximum: 64, description: 'Passes [2]' },
        parallelism: { type: 'integer', minimum: 1, maximum: 16, description: 'Lanes [1]' },
      },
      required: ['algorithm'],
      additionalProperties: false,
    },
    {
      title: 'BcryptPolicy',
      type: 'object',
      properties: {
        algorithm: { const: 'bcrypt' },
        cost: { type: 'integer', minimum: 4, maximum: 17, description: 'The logarithm of its rounds [12]' },
      },
      required: ['algorithm'],
      additionalProperties: false,
    },
  ],
} as const
export type PolicyField = FromSchema<{ oneOf: (typeof PolicyField)['oneOf'] }>

/** POST /v1/passwords/verify: whether a password matches a stored hash. */
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

/** POST /v1/passwords/hash: a new hash to store. */
export const hash = defineServiceOperation({
  kind: 'service_hash',
  url: '/v1/passwords/hash',
  operationId: 'hashPassword',
  summary: 'Hash a password',
  body: schemaOf({
    title: 'PasswordToHash',
    type: 'object',
    properties: { password: AnyPasswordField, policy: PolicyField },
    required: ['password'],
    additionalProperties: false,
  }),
  answer: schemaOf({
    title: 'NewHash',
    description: 'The hash to store',
    type: 'object',
    properties: { hash: { type: 'string' } },
    required: ['hash'],
    additionalProperties: false,
  }),

  job({ password }, policy) {
    if (policy?.algorithm === 'bcrypt' && !bcryptReadsWhole(password)) throw tooLongForBcrypt('password')
    return { name: 'hash', request: { password, ...(policy && { policy }) } }
  },

  finish(verdict, isAsAsked) {
    if (verdict.kind === 'hashed' && isAsAsked(verdict.hash)) return { hash: verdict.hash }
    const cause = new Error('a worker made another kind of hash than the policy of the request asks for')
    throw new ApiError('internal_error', { cause })
  },
})
