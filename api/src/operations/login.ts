/** POST /v1/login: loads the credential, verifies it (or a decoy), and opens a session. The hash is upgraded after the answer. */
import { Prisma, rawQuery, type User } from '@spillway/prisma'
import { generationOf } from '../guessing/device-token.js'
import { ApiError } from '../problems/errors.js'
import { TokenBody } from '../schemas/bodies.js'
import { guessingHeaders } from '../schemas/challenge.js'
import { EmailField, normalizeEmail, PasswordField, passwordForms } from '../schemas/credentials.js'
import { unauthorizedProblem } from '../schemas/responses.js'
import { schemaOf } from '../schemas/schema.js'
import { guesser } from './access.js'
import { digestOf } from './hash-upgrades.js'
import { defineOperation } from './public-operation.js'

type Credential = Pick<User, 'id' | 'passwordHash' | 'credentialVersion'> & {
  /** Whether the address is confirmed, or need not be, and no operator disabled the account. */
  mayLogIn: boolean
}

/** The user of an unknown address. */
const NOBODY = '00000000-0000-0000-0000-000000000000'

/** The attempt of a login, in its ticket. */
const AttemptContents = {
  type: 'object',
  properties: {
    id: { type: 'string' },
    account: { type: 'string' },
    device: { type: ['string', 'null'] },
    network: { type: 'string' },
  },
  required: ['id', 'account', 'device', 'network'],
  additionalProperties: false,
} as const

export const login = defineOperation({
  kind: 'login',
  method: 'POST',
  url: '/v1/login',
  operationId: 'login',
  tags: ['Sessions'],
  summary: 'Log in',
  description:
    'The same 401 for a wrong password and an unknown address; after the same time too, where the hash of the account ' +
    "is of today's policy. Failures of devices that have never logged in to the account are counted together: after some of them a login " +
    'has to wait, or to solve the challenge of the problem; after 100 it has to solve one.',
  access: guesser,
  headers: guessingHeaders,
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
      /** {@link NOBODY} for an unknown address, whose job is a decoy. */
      userId: { type: 'string' },
      credentialVersion: { type: 'integer' },
      /** The digest of the hash that is verified. */
      verified: { type: 'string' },
      attempt: AttemptContents,
    },
    required: ['userId', 'credentialVersion', 'verified', 'attempt'],
    additionalProperties: false,
  }),
  answer: { status: 200, body: schemaOf(TokenBody) },
  headersOf: ({ deviceHeaders }, { deviceToken }) => (deviceToken === undefined ? {} : deviceHeaders(deviceToken)),
  problems: { 401: unauthorizedProblem },

  concerns({ userId }, { id }, succeeded) {
    if (succeeded) return { userId, sessionId: id }
    return { userId: userId === NOBODY ? null : userId }
  },

  async start({ database, upgrades, needsConfirmedEmail }, { body: { email, password }, caller: login }, submit) {
    if (login === undefined) throw new ApiError('internal_error')
    const sql = Prisma.sql`
      SELECT id, password_hash AS "passwordHash", credential_version AS "credentialVersion",
        disabled_at IS NULL AND (email_confirmed_at IS NOT NULL OR NOT ${needsConfirmedEmail}::boolean) AS "mayLogIn"
      FROM users WHERE email = ${normalizeEmail(email)}`
    const [user] = await rawQuery<Credential>(database, sql)
    await login.confirm(user && generationOf({ ...user, userId: user.id }))
    const pending = await submit('verify', {
      ...passwordForms(password),
      // A decoy for an account that may not log in yet: a right password would take longer to be refused than a wrong one.
      storedHash: user?.mayLogIn ? user.passwordHash : null,
      ...upgrades.request,
    })
    // As long for an unknown address as for a known one: a ticket must not tell them apart.
    const {
      id: userId,
      credentialVersion,
      passwordHash,
    } = user ?? { id: NOBODY, credentialVersion: 0, passwordHash: '' }
    return {
      contents: { userId, credentialVersion, verified: digestOf(passwordHash), attempt: login.attempt },
      pending,
    }
  },

  async finish(
    { sessions, issueTokens, upgrades, guessing },
    { userId, credentialVersion, verified, attempt },
    { verdict, client, ...job },
  ) {
    const isKnown = userId !== NOBODY
    if (!isKnown || verdict.kind !== 'match')
      throw new ApiError('invalid_credentials', { reason: isKnown ? 'wrong_password' : 'unknown_account' })
    const sessionId = job.id
    const session = await sessions.open({ id: sessionId, userId, credentialVersion, ...client })
    if (session === 'stale') throw new ApiError('invalid_credentials', { reason: 'password_changed' })
    if (session === 'exists') throw new ApiError('ticket_used')
    if (verdict.hashFollows) upgrades.follow(job, { userId, verified })
    const tokens = issueTokens({ userId, sessionId, refreshToken: session.refreshToken })
    guessing.succeeded(attempt)
    return { ...tokens, deviceToken: guessing.issueDeviceToken(attempt, generationOf({ userId, credentialVersion })) }
  },

  failed: ({ guessing }, { attempt }) => guessing.failed(attempt),
  unanswered: ({ guessing }, { attempt }) => guessing.unanswered(attempt),
})
