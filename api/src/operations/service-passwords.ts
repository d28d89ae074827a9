/** Operations of the service API, for applications that keep their own users. */

import { completePolicy } from '@spillway/client/application/options'
import { ownerOfService } from '@spillway/queue/wire/job'
import { objectOf } from '@spillway/queue/wire/object-schema'
import { bcryptReadsWhole, type HashPolicy, HashPolicySchema } from '@spillway/queue/wire/policy'
import { isOf, storedHashDigest } from '@spillway/queue/wire/stored-hash'
import type { FromSchema } from 'json-schema-to-ts'
import { ApiError } from '../plugins/errors.js'
import { AnyPasswordField } from '../schemas/credentials.js'
import { problemResponse, unauthorizedProblem } from '../schemas/responses.js'
import { schemaOf } from '../schemas/schema.js'
import type { Access } from './access.js'
import { tooLongForBcrypt } from './new-password.js'
import { Operation } from './operation.js'

const STORED_HASH_MAX_LENGTH = 1_024

const StoredHashField = {
  type: ['string', 'null'],
  maxLength: STORED_HASH_MAX_LENGTH,
  description:
    'A stored hash of any format that workers know; null for an unknown user: that takes as long as a hash of the policy, and never ' +
    'matches',
  examples: ['$2b$12$KIXQ4aVRzAN1sVYq3xXbFe1uWbFmVWWlqk4fRr3rL5y8m3Ew2S1pK'],
} as const

const PolicyField = {
  title: 'Policy',
  description: 'Algorithm and cost of new hashes [the policy of the workers]',
  type: 'object',
  discriminator: { propertyName: 'algorithm' },
  required: ['algorithm'],
  oneOf: [
    {
      title: 'Argon2idPolicy',
      ...objectOf(
        { algorithm: { const: 'argon2id' } },
        {
          memoryKib: { type: 'integer', minimum: 8, maximum: 1_048_576, description: 'KiB, 8 or more a lane [19456]' },
          time: { type: 'integer', minimum: 1, maximum: 64, description: 'Passes [2]' },
          parallelism: { type: 'integer', minimum: 1, maximum: 16, description: 'Lanes [1]' },
        },
      ),
    },
    {
      title: 'BcryptPolicy',
      ...objectOf(
        { algorithm: { const: 'bcrypt' } },
        { cost: { type: 'integer', minimum: 4, maximum: 17, description: 'The logarithm of its rounds [12]' } },
      ),
    },
  ],
} as const
type PolicyField = FromSchema<{ oneOf: (typeof PolicyField)['oneOf'] }>

/** The policy of a request with its defaults filled in; undefined for the workers' policy. */
function policyOf(field: PolicyField | undefined): HashPolicy | undefined {
  try {
    return field && completePolicy(field)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new ApiError('invalid_request', { fields: [{ field: 'policy', message: error.message }] })
  }
}

const byKey: Access<string> = {
  hooks: ({ requireServiceKey, limitService }) => ({ onRequest: [requireServiceKey, limitService], preHandler: [] }),
  security: [{ serviceKey: [] }],
  callerOf: ({ service = '' }) => service,
}

const common = {
  method: 'POST',
  tags: ['Passwords'],
  access: byKey,
  problems: { 401: unauthorizedProblem, 422: problemResponse },
  unsupportedHash: () => new ApiError('unsupported_hash'),
  /** Ticket contents: the service, whose keys alone redeem it, its policy, a digest of the hash. */
  contents: schemaOf(
    objectOf({ service: { type: 'string' } }, { policy: HashPolicySchema, hashDigest: { type: 'string' } }),
  ),
} as const

/** POST /v1/passwords/verify: whether a password matches a stored hash. */
export const verify = new Operation({
  ...common,
  kind: 'service_verify',
  url: '/v1/passwords/verify',
  operationId: 'verifyPassword',
  summary: 'Verify a password',
  description: 'A wrong password is an answer as well: 200 with `match: false`.',
  body: schemaOf({
    title: 'PasswordToVerify',
    ...objectOf(
      { password: AnyPasswordField, storedHash: StoredHashField },
      {
        rehash: {
          type: 'boolean',
          default: false,
          description:
            'Whether a match of a hash that is weaker than the policy comes with a new hash to store; without a policy of the request, ' +
            'REHASH of the workers applies',
        },
        policy: PolicyField,
      },
    ),
  }),
  success: {
    status: 200,
    body: schemaOf({
      title: 'Verification',
      description: 'Whether the password matches',
      ...objectOf(
        { match: { type: 'boolean' } },
        {
          hashDigest: {
            type: 'string',
            description:
              'With a match: SHA-256 of the stored hash, in base64. The password may have been changed meanwhile: open a session, and ' +
              'store newHash, only where this is the digest of the hash that is stored now',
          },
          newHash: { type: 'string', description: 'Store it in place of the old one' },
        },
      ),
    }),
  },

  start(_deps, { body: { password, storedHash, rehash = false, policy: field }, caller: service }) {
    const policy = policyOf(field)
    const request = { password, storedHash, owner: ownerOfService(service), rehash, ...(policy && { policy }) }
    const hashDigest = storedHash === null ? {} : { hashDigest: storedHashDigest(storedHash) }
    return { job: { name: 'verify', request }, contents: { service, ...(policy && { policy }), ...hashDigest } }
  },

  async finish(_deps, { policy, hashDigest = '' }, { verdict }) {
    if (verdict.kind !== 'match') return { match: false }
    const { hash } = verdict
    const isAsAsked = hash !== undefined && (policy === undefined || isOf(hash, policy))
    return { match: true, hashDigest, ...(isAsAsked && { newHash: hash }) }
  },
})

/** POST /v1/passwords/hash: a new hash to store. */
export const hash = new Operation({
  ...common,
  kind: 'service_hash',
  url: '/v1/passwords/hash',
  operationId: 'hashPassword',
  summary: 'Hash a password',
  body: schemaOf({ title: 'PasswordToHash', ...objectOf({ password: AnyPasswordField }, { policy: PolicyField }) }),
  success: {
    status: 200,
    body: schemaOf({ title: 'NewHash', description: 'The hash to store', ...objectOf({ hash: { type: 'string' } }) }),
  },

  start(_deps, { body: { password, policy: field }, caller: service }) {
    const policy = policyOf(field)
    if (policy?.algorithm === 'bcrypt' && !bcryptReadsWhole(password)) throw tooLongForBcrypt('password')
    const contents = { service, ...(policy && { policy }) }
    return { job: { name: 'hash', request: { password, ...(policy && { policy }) } }, contents }
  },

  async finish(_deps, { policy }, { verdict }) {
    if (verdict.kind === 'hashed' && (policy === undefined || isOf(verdict.hash, policy))) return { hash: verdict.hash }
    const cause = new Error('a worker made another kind of hash than the policy of the request asks for')
    throw new ApiError('internal_error', { cause })
  },
})

export const serviceOperations: readonly Operation<unknown>[] = [verify, hash]
