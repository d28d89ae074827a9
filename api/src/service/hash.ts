/** POST /v1/passwords/hash: a new hash to store. */
import { bcryptReadsWhole } from '@spillway/client/protocol/policy'
import { ApiError } from '../problems/errors.js'
import { AnyPasswordField } from '../schemas/credentials.js'
import { schemaOf } from '../schemas/schema.js'
import { defineServiceOperation, isAsAsked, policyOf } from './operation.js'
import { contentsProperties, PolicyField } from './schemas.js'

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
  contents: schemaOf({
    type: 'object',
    properties: contentsProperties,
    required: ['service'],
    additionalProperties: false,
  }),
  answer: {
    status: 200,
    body: schemaOf({
      title: 'NewHash',
      description: 'The hash to store',
      type: 'object',
      properties: { hash: { type: 'string' } },
      required: ['hash'],
      additionalProperties: false,
    }),
  },

  async start(_deps, { body: { password, policy: field }, caller: service }, submit) {
    const policy = policyOf(field)
    if (policy?.algorithm === 'bcrypt' && !bcryptReadsWhole(password)) {
      const message = 'must be 72 bytes or fewer and hold no NUL: bcrypt reads no more'
      throw new ApiError('invalid_request', { fields: [{ field: 'password', message }] })
    }
    const pending = await submit('hash', { password, ...(policy && { policy }) })
    return { contents: { service, ...(policy && { policy }) }, pending }
  },

  async finish(_deps, { policy }, { verdict }) {
    if (verdict.kind === 'hashed' && isAsAsked(verdict.hash, policyOf(policy))) return { hash: verdict.hash }
    throw new ApiError('internal_error', {
      cause: new Error('a worker made another kind of hash: it is of an older version'),
    })
  },
})
