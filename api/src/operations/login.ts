/** POST /v1/login: loads the credential, verifies it (or a decoy), and opens a session. The hash is upgraded after the answer. */
import { Prisma, rawQuery, type User } from '@spillway/prisma'
import { ApiError } from '../problems/errors.js'
import { TokenBody } from '../schemas/bodies.js'
import { EmailField, normalizeEmail, normalizePassword, PasswordField } from '../schemas/credentials.js'
import { unauthorizedProblem } from '../schemas/responses.js'
import { schemaOf } from '../schemas/schema.js'
import { anyone } from './access.js'
import { digestOf } from './hash-upgrades.js'
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
      /** The digest of the hash that is verified. */
      verified: { type: 'string' },
    },
    required: ['userId', 'credentialVersion'],
    additionalProperties: false,
  }),
  answer: { status: 200, body: schemaOf(TokenBody) },
  problems: { 401: unauthorizedProblem },

  async start({ database, upgrades }, { body: { email, password } }, submit) {
    const sql = Prisma.sql`
      SELECT id, password_hash AS "passwordHash", credential_version AS "credentialVersion"
      FROM users WHERE email = ${normalizeEmail(email)}`
    const [user] = await rawQuery<Pick<User, 'id' | 'passwordHash' | 'credentialVersion'>>(database, sql)
    const pending = await submit('verify', {
      password: normalizePassword(password),
      storedHash: user?.passwordHash ?? null,
      ...upgrades.request,
    })
    if (user === undefined) return { contents: { userId: null, credentialVersion: 0 }, pending }
    const { id: userId, credentialVersion, passwordHash } = user
    return { contents: { userId, credentialVersion, verified: digestOf(passwordHash) }, pending }
  },

  async finish(
    { sessions, issueTokens, upgrades },
    { userId, credentialVersion, verified },
    { verdict, client, ...job },
  ) {
    if (userId === null) throw new ApiError('invalid_credentials', { reason: 'unknown_account' })
    if (verdict.kind !== 'match') throw new ApiError('invalid_credentials', { reason: 'wrong_password' })
    const sessionId = job.id
    const session = await sessions.open({ id: sessionId, userId, credentialVersion, ...client })
    if (session === 'stale') throw new ApiError('invalid_credentials', { reason: 'password_changed' })
    if (session === 'exists') throw new ApiError('ticket_used')
    if (verdict.hashFollows && verified !== undefined) upgrades.follow(job, { userId, verified })
    return issueTokens({ userId, sessionId, refreshToken: session.refreshToken })
  },
})
