/** POST /v1/login: loads the credential, verifies it (or a decoy), and opens a session. The hash is upgraded after the answer. */
import { Prisma, rawQuery, type User } from '@spillway/prisma'
import type { Attempt } from '../guessing/guessing.js'
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
  /** Whether the address is confirmed, or need not be. */
  mayLogIn: boolean
}

/** The user of an unknown address. */
const NOBODY = '00000000-0000-0000-0000-000000000000'

function written(verified: string, attempt: Attempt | undefined): string {
  if (attempt === undefined) return verified
  return [verified, attempt.account, attempt.device ?? '-', attempt.network].join(' ')
}

/** A ticket of an earlier version has the digest alone, or nothing. */
function readBack(text: string | undefined): { verified: string | undefined; attempt: Attempt | undefined } {
  const [verified, account, device, network] = text?.split(' ') ?? []
  if (account === undefined || device === undefined || network === undefined) return { verified, attempt: undefined }
  return { verified, attempt: { account, device: device === '-' ? null : device, network } }
}

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
      /** Null (in tickets of earlier versions) or {@link NOBODY} for an unknown address, whose job is a decoy. */
      userId: { type: ['string', 'null'] },
      credentialVersion: { type: 'integer' },
      /**
       * The digest of the hash that is verified; after blanks the attempt's account, device and network. Not in fields of their own, because
       * gateways of the version before refuse fields that they do not know: they only lose the upgrade of the hash.
       */
      verified: { type: 'string' },
    },
    required: ['userId', 'credentialVersion'],
    additionalProperties: false,
  }),
  answer: { status: 200, body: schemaOf(TokenBody) },
  headersOf: ({ deviceHeaders }, { deviceToken }) => (deviceToken === undefined ? {} : deviceHeaders(deviceToken)),
  problems: { 401: unauthorizedProblem },

  concerns({ userId }, { id }, succeeded) {
    if (succeeded) return { userId, sessionId: id }
    return { userId: userId === NOBODY ? null : userId }
  },

  async start({ database, upgrades, needsConfirmedEmail }, { body: { email, password }, caller: attempt }, submit) {
    const sql = Prisma.sql`
      SELECT id, password_hash AS "passwordHash", credential_version AS "credentialVersion",
        email_confirmed_at IS NOT NULL OR NOT ${needsConfirmedEmail}::boolean AS "mayLogIn"
      FROM users WHERE email = ${normalizeEmail(email)}`
    const [user] = await rawQuery<Credential>(database, sql)
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
    return { contents: { userId, credentialVersion, verified: written(digestOf(passwordHash), attempt) }, pending }
  },

  async finish(
    { sessions, issueTokens, upgrades, guessing },
    { userId, credentialVersion, verified: text },
    { verdict, client, ...job },
  ) {
    const { verified, attempt } = readBack(text)
    const isKnown = userId !== null && userId !== NOBODY
    if (!isKnown || verdict.kind !== 'match')
      throw new ApiError('invalid_credentials', { reason: isKnown ? 'wrong_password' : 'unknown_account' })
    const sessionId = job.id
    // Before the session is opened: see issueDeviceToken.
    const deviceToken = attempt && guessing.issueDeviceToken(attempt)
    const session = await sessions.open({ id: sessionId, userId, credentialVersion, ...client })
    if (session === 'stale') throw new ApiError('invalid_credentials', { reason: 'password_changed' })
    if (session === 'exists') throw new ApiError('ticket_used')
    if (verdict.hashFollows && verified !== undefined) upgrades.follow(job, { userId, verified })
    const tokens = issueTokens({ userId, sessionId, refreshToken: session.refreshToken })
    if (attempt !== undefined) guessing.succeeded(attempt)
    return deviceToken === undefined ? tokens : { ...tokens, deviceToken }
  },

  failed({ guessing }, { verified }) {
    const { attempt } = readBack(verified)
    if (attempt !== undefined) guessing.failed(attempt)
  },
})
