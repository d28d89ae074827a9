/** POST /v1/me/password/verify: verifies the password of a signed-in user again, for instance before a dangerous action. */
import { ApiError } from '../problems/errors.js'
import { normalizePassword, PasswordField } from '../schemas/credentials.js'
import { unauthorizedProblem } from '../schemas/responses.js'
import { schemaOf } from '../schemas/schema.js'
import { SignedInContents, signedIn } from './access.js'
import { defineOperation } from './public-operation.js'

export const verifyPassword = defineOperation({
  kind: 'verify_password',
  method: 'POST',
  url: '/v1/me/password/verify',
  operationId: 'verifyPassword',
  tags: ['Accounts'],
  summary: 'Verify the password once more',
  description: 'Before something dangerous: that the session is open does not say who sits before it. Changes nothing.',
  access: signedIn,
  body: schemaOf({
    title: 'PasswordToVerify',
    type: 'object',
    properties: { password: PasswordField },
    required: ['password'],
    additionalProperties: false,
  }),
  contents: SignedInContents,
  answer: { status: 204, body: schemaOf({ type: 'null', description: 'The password is right' }) },
  problems: { 401: unauthorizedProblem },

  async start({ sessions }, { body: { password }, caller }, submit) {
    const user = await sessions.userOf(caller)
    if (user === undefined) throw new ApiError('invalid_token')
    const request = { password: normalizePassword(password), storedHash: user.passwordHash, rehash: false }
    const pending = await submit('verify', request)
    return { contents: { ...caller, credentialVersion: user.credentialVersion }, pending }
  },

  async finish({ sessions }, { credentialVersion, ...caller }, { verdict }) {
    if (verdict.kind !== 'match') throw new ApiError('invalid_credentials', { reason: 'wrong_password' })
    const user = await sessions.userOf(caller)
    if (user === undefined) throw new ApiError('invalid_token')
    if (user.credentialVersion !== credentialVersion)
      throw new ApiError('invalid_credentials', { reason: 'password_changed' })
    return null
  },
})
