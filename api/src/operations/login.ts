/** POST /v1/login: loads the credential, verifies it (or a decoy), then upgrades the hash and opens a session. */
import { Prisma, rawQuery, type User } from '@spillway/prisma'
import { ApiError } from '../problems/errors.js'
import { TokenBody } from '../schemas/bodies.js'
import { EmailField, normalizeEmail, normalizePassword, PasswordField } from '../schemas/credentials.js'
import { unauthorizedProblem } from '../schemas/responses.js'
import { schemaOf } from '../schemas/schema.js'
import { anyone } from './access.js'
import { defineOperation } from './public-operation.js'

export const login = defineOperation({
  kind: 'login',
  method: 'POST',
  url: '/v1/login',
  operationId: 'login',
  tags: ['Sessions'],
  summary: 'Log in',
  description:
    'The same 401 for a wrong password and an unknown address; after the same time too, where the hash of the account ' +
    "is of today's policy.",
  access: anyone,
  body: schemaOf({
    title: 'Credentials',
    type: 'object',
    properties: { email: EmailField, password: PasswordField },
    required: ['email', 'password'],
    additionalProperties: false,
  }),
  contents: schemaOf({
    type: 'object',
    properties: {
      /** Null for an unknown address, whose job is a decoy. */
      userId: { type: ['string', 'null'] },
      credentialVersion: { type: 'integer' },
    },
    required: ['userId', 'credentialVersion'],
    additionalProperties: false,
  }),
  answer: { status: 200, body: schemaOf(TokenBody) },
  problems: { 401: unauthorizedProblem },

  async start({ database }, { body: { email, password } }, submit) {
    const sql = Prisma.sql`
      SELECT id, password_hash AS "passwordHash", credential_version AS "credentialVersion"
      FROM users WHERE email = ${normalizeEmail(email)}`
    const [user] = await rawQuery<Pick<User, 'id' | 'passwordHash' | 'credentialVersion'>>(database, sql)
    const pending = await submit('verify', {
      password: normalizePassword(password),
      storedHash: user?.passwordHash ?? null,
    })
    return { contents: { userId: user?.id ?? null, credentialVersion: user?.credentialVersion ?? 0 }, pending }
  },

  async finish({ database, sessions, issueTokens }, { userId, credentialVersion }, { id: sessionId, verdict }) {
    if (userId === null) throw new ApiError('invalid_credentials', { reason: 'unknown_account' })
    if (verdict.kind !== 'match') throw new ApiError('invalid_credentials', { reason: 'wrong_password' })
    if (verdict.hash !== undefined) {
      // Only if the password has not been changed meanwhile. Before the session, so that the ticket stays valid if this fails.
      await database.user.updateMany({ where: { id: userId, credentialVersion }, data: { passwordHash: verdict.hash } })
    }
    const session = await sessions.open({ id: sessionId, userId, credentialVersion })
    if (session === 'stale') throw new ApiError('invalid_credentials', { reason: 'password_changed' })
    if (session === 'exists') throw new ApiError('ticket_used')
    return issueTokens({ userId, sessionId, refreshToken: session.refreshToken })
  },
})
