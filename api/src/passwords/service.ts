/** Endpoints of the service API, for applications that keep their own users, and the keys of these. */
import { timingSafeEqual } from 'node:crypto'
import { ownerOfService } from '@spillway/queue/wire/job'
import { objectOf } from '@spillway/queue/wire/object-schema'
import { bcryptReadsWhole, completePolicy, type HashPolicy, HashPolicySchema } from '@spillway/queue/wire/policy'
import { parseKeyList } from '@spillway/queue/wire/seal'
import { isOf, storedHashDigest } from '@spillway/queue/wire/stored-hash'
import type { onRequestAsyncHookHandler } from 'fastify'
import type { FromSchema } from 'json-schema-to-ts'
import { ApiError, invalid } from '../http/problems.js'
import type { LimitRequest } from '../limits/limits.js'
import { AnyPasswordField } from '../schemas/credentials.js'
import { problemResponse, unauthorizedProblem } from '../schemas/responses.js'
import type { Opened } from '../start.js'
import { defineEndpoint, type Endpoint, schemaOf } from './endpoint.js'
import { tooLongForBcrypt } from './new-password.js'

const STORED_HASH_MAX_LENGTH = 1_024

const StoredHashField = {
  type: ['string', 'null'],
  maxLength: STORED_HASH_MAX_LENGTH,
  description:
    'A stored hash in any format that workers support, or null for an unknown user. null takes as long as a hash of the policy, and never ' +
    'matches',
  examples: ['$2b$12$KIXQ4aVRzAN1sVYq3xXbFe1uWbFmVWWlqk4fRr3rL5y8m3Ew2S1pK'],
} as const

const PolicyField = {
  title: 'Policy',
  description: 'The algorithm and cost of new hashes [the policy of the workers]',
  type: 'object',
  discriminator: { propertyName: 'algorithm' },
  required: ['algorithm'],
  oneOf: [
    {
      title: 'Argon2idPolicy',
      ...objectOf(
        { algorithm: { const: 'argon2id' } },
        {
          memoryKib: { type: 'integer', minimum: 8, maximum: 1_048_576, description: 'At least 8 per lane [19456]' },
          time: { type: 'integer', minimum: 1, maximum: 64, description: 'Passes [2]' },
          parallelism: { type: 'integer', minimum: 1, maximum: 16, description: 'Lanes [1]' },
        },
      ),
    },
    {
      title: 'BcryptPolicy',
      ...objectOf(
        { algorithm: { const: 'bcrypt' } },
        { cost: { type: 'integer', minimum: 4, maximum: 17, description: 'The base-2 logarithm of the rounds [12]' } },
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
    throw invalid('policy', error.message)
  }
}

export interface ServiceDeps extends Opened {
  requireServiceKey: onRequestAsyncHookHandler
  /** Counts a request against the limit of its service. */
  limitService: LimitRequest
}

const common = {
  method: 'POST',
  tags: ['Passwords'],
  security: [{ serviceKey: [] }],
  onRequest: ({ requireServiceKey, limitService }: ServiceDeps) => [requireServiceKey, limitService],
  problems: { 401: unauthorizedProblem, 422: problemResponse },
  unsupportedHash: () => new ApiError('unsupported_hash'),
} as const

/** The service, which alone may redeem the ticket, its policy, and a digest of the stored hash. */
const remembered = schemaOf(
  objectOf({ service: { type: 'string' } }, { policy: HashPolicySchema, hashDigest: { type: 'string' } }),
)

/** POST /v1/passwords/verify: whether a password matches a stored hash. */
export const verify = defineEndpoint({
  route: {
    ...common,
    kind: 'service_verify',
    url: '/v1/passwords/verify',
    operationId: 'verifyPassword',
    summary: 'Verify a password',
    description: 'The answer to a wrong password is 200 with `match: false`.',
    body: schemaOf({
      title: 'PasswordToVerify',
      ...objectOf(
        { password: AnyPasswordField, storedHash: StoredHashField },
        {
          rehash: {
            type: 'boolean',
            default: false,
            description:
              'If true, and the stored hash is weaker than the policy, a match also returns newHash. If the request has no policy, ' +
              'the setting REHASH of the workers decides',
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
                'Present with a match: SHA-256 of the stored hash, in base64. The password may have changed meanwhile: open a session, and ' +
                'store newHash, only if this is the digest of the hash that is stored now',
            },
            newHash: { type: 'string', description: 'The hash to store in place of the old one' },
          },
        ),
      }),
    },
  },
  remembered,

  async start(
    _deps: ServiceDeps,
    { body: { password, storedHash, rehash = false, policy: field }, request: { service = '' } },
  ) {
    const policy = policyOf(field)
    const request = { password, storedHash, owner: ownerOfService(service), rehash, ...(policy && { policy }) }
    const hashDigest = storedHash === null ? {} : { hashDigest: storedHashDigest(storedHash) }
    return { job: { name: 'verify', request }, remembered: { service, ...(policy && { policy }), ...hashDigest } }
  },

  async finish(_deps, { policy, hashDigest = '' }, { result }) {
    if (result.kind !== 'match') return { body: { match: false } }
    const { hash } = result
    const isAsAsked = hash !== undefined && (policy === undefined || isOf(hash, policy))
    return { body: { match: true, hashDigest, ...(isAsAsked && { newHash: hash }) } }
  },
})

/** POST /v1/passwords/hash: makes a new hash to store. */
export const hash = defineEndpoint({
  route: {
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
  },
  remembered,

  async start(_deps: ServiceDeps, { body: { password, policy: field }, request: { service = '' } }) {
    const policy = policyOf(field)
    if (policy?.algorithm === 'bcrypt' && !bcryptReadsWhole(password)) throw tooLongForBcrypt('password')
    const request = { password, ...(policy && { policy }) }
    return { job: { name: 'hash', request }, remembered: { service, ...(policy && { policy }) } }
  },

  async finish(_deps, { policy }, { result }) {
    if (result.kind === 'hashed' && (policy === undefined || isOf(result.hash, policy)))
      return { body: { hash: result.hash } }
    const cause = new Error('a worker made another kind of hash than the policy of the request asks for')
    throw new ApiError('internal_error', { cause })
  },
})

export const serviceEndpoints: readonly Endpoint<ServiceDeps>[] = [verify, hash]

// Keys. A service sends one of its keys as a bearer token (RFC 6750), or with its name by HTTP
// Basic, like clients of OAuth (RFC 6749, 2.3.1). To rotate a key, add a second key of the same
// name to the list, give it to the service, then remove the first.

function credentialsOf(authorization: string): { name?: string; key: string } {
  const [, bearer] = /^Bearer +([A-Za-z0-9+/_-]+=*)$/i.exec(authorization) ?? []
  if (bearer !== undefined) return { key: bearer }
  const [, basic = ''] = /^Basic +([A-Za-z0-9+/]+=*)$/i.exec(authorization) ?? []
  // The RFC requires clients to encode both parts, but not all do. No part contains a percent sign.
  const [, name = '', key = ''] =
    /^([\w-]+):([A-Za-z0-9+/_=%-]+)$/.exec(Buffer.from(basic, 'base64').toString('latin1')) ?? []
  return { name, key: key.replace(/%2b/gi, '+').replace(/%2f/gi, '/').replace(/%3d/gi, '=') }
}

/** A hook that names the service of a request. Throws `invalid_service_key`. */
export function requireKeyOf(list: string): onRequestAsyncHookHandler {
  const known = parseKeyList('SERVICE_KEYS', list)
  return async (request) => {
    const { name, key } = credentialsOf(request.headers.authorization ?? '')
    const given = Buffer.from(key, 'base64')
    // Compares with every key, each in constant time.
    const fitting = known.filter(({ key }) => given.length === key.length && timingSafeEqual(given, key))
    const service = fitting[0]?.name
    if (service === undefined || (name !== undefined && name !== service)) throw new ApiError('invalid_service_key')
    request.service = service
  }
}
