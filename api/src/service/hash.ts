/** POST /v1/passwords/hash: a new hash to store. */
import { bcryptReadsWhole } from '@spillway/client/protocol/policy'
import { tooLongForBcrypt } from '../operations/new-password.js'
import { ApiError } from '../problems/errors.js'
import { AnyPasswordField } from '../schemas/credentials.js'
import { schemaOf } from '../schemas/schema.js'
import { defineServiceOperation } from './operation.js'
import { PolicyField } from './schemas.js'

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
    const cause = new Error('a worker made another kind of hash: it is of an older version')
    throw new ApiError('internal_error', { cause })
  },
})
