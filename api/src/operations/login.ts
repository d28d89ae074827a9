/** POST /v1/login: loads the credential, verifies it (or a decoy), and opens a session. The hash is upgraded after the answer. */
import { newId } from '@spillway/client/protocol/id'
import { ASK_OLD_SYSTEM } from '@spillway/client/protocol/stored-hash'
import { type Database, gather, Prisma, rawQuery, type User } from '@spillway/prisma'
import { generationOf } from '../guessing/device-token.js'
import { ApiError } from '../problems/errors.js'
import { TokenBody } from '../schemas/bodies.js'
import { EmailField, normalizeEmail, PasswordField, passwordForms } from '../schemas/credentials.js'
import { guessingHeaders, unauthorizedProblem } from '../schemas/responses.js'
import { schemaOf } from '../schemas/schema.js'
import { guesser } from './access.js'
import { storedHashDigest } from './hash-upgrades.js'
import { defineOperation } from './public-operation.js'

/** Whether an account came without a hash, and may log in. */
function isToBeAsked({ mayLogIn, passwordHash }: Credential): boolean {
  return mayLogIn && passwordHash === ASK_OLD_SYSTEM
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
      /** Where the old system may be asked: the address of an account that may be made. */
      email: { type: 'string' },
    },
    required: ['userId', 'credentialVersion', 'verified', 'attempt'],
    additionalProperties: false,
  }),
  answer: { status: 200, body: schemaOf(TokenBody) },
  sent: ({ tokenCarrier }, tokens) => tokenCarrier.answer(tokens),
  problems: { 401: unauthorizedProblem },

  concerns({ userId }, { id }, succeeded) {
    // An account that the old system vouched for has its id only now.
    const account = { userId: userId === NOBODY ? null : userId }
    return succeeded ? { ...account, sessionId: id } : account
  },

  async start(deps, { body: { email: given, password }, caller: login }) {
    if (login === undefined) throw new ApiError('internal_error')
    const { findCredential, upgrades, asksOldSystem } = deps
    const email = normalizeEmail(given)
    const user = await findCredential(email)
    await login.confirm(user === null ? undefined : generationOf({ ...user, userId: user.id }))
    const request = {
      ...passwordForms(password),
      // A decoy for an account that may not log in yet: a right password would take longer to be refused than a wrong one.
      storedHash: user?.mayLogIn ? user.passwordHash : null,
      ...(asksOldSystem ? { oldSystem: { email, ask: user === null || isToBeAsked(user) } } : {}),
      ...upgrades.request,
    }
    // As long for an unknown address as for a known one: a ticket must not tell them apart.
    const {
      id: userId,
      credentialVersion,
      passwordHash,
    } = user ?? { id: NOBODY, credentialVersion: 0, passwordHash: '' }
    const verified = storedHashDigest(passwordHash)
    const address = asksOldSystem ? { email } : {}
    const contents = { userId, credentialVersion, verified, attempt: login.attempt, ...address }
    return { job: { name: 'verify', request }, contents }
  },

  async finish(
    { database, sessions, issueTokens, upgrades, guessing },
    { verified, attempt, email, ...known },
    { verdict, client, ...job },
  ) {
    const isKnown = known.userId !== NOBODY
    const isVouchedFor = verdict.kind === 'match' && verdict.hash !== undefined && email !== undefined
    if (verdict.kind !== 'match' || !(isKnown || isVouchedFor))
      throw new ApiError('invalid_credentials', { reason: isKnown ? 'wrong_password' : 'unknown_account' })
    const vouchedFor = isVouchedFor ? { email, passwordHash: verdict.hash ?? '' } : undefined
    if (isKnown && vouchedFor !== undefined) await completeAccount(database, known.userId, vouchedFor.passwordHash)
    const account = isKnown || vouchedFor === undefined ? known : await createVouchedFor(database, vouchedFor)
    if (account === undefined) throw new ApiError('invalid_credentials', { reason: 'password_changed' })
    const { userId, credentialVersion } = account
    const session = await sessions.open({ id: job.id, userId, credentialVersion, ...client })
    if (session === 'stale') throw new ApiError('invalid_credentials', { reason: 'password_changed' })
    if (session === 'exists') throw new ApiError('ticket_used')
    if (verdict.hashFollows) upgrades.follow(job, { userId, verified })
    const tokens = await issueTokens(session)
    guessing.succeeded(attempt)
    return { ...tokens, deviceToken: guessing.issueDeviceToken(attempt, generationOf({ userId, credentialVersion })) }
  },

  failed: ({ guessing }, { attempt }) => guessing.failed(attempt),
  mayBeHashed: ({ guessing }, { attempt }) => guessing.mayBeHashed(attempt),
  unanswered: ({ guessing }, { attempt }) => guessing.unanswered(attempt),
  setAside: ({ guessing }, { attempt }) => guessing.setAside(attempt),
})

// The credential of a login's address. Lookups that wait together go as one statement.

type Credential = Pick<User, 'id' | 'passwordHash' | 'credentialVersion'> & {
  /** Whether the address is confirmed, or need not be, and no operator disabled the account. */
  mayLogIn: boolean
}

/** Resolves with the credential of an address in its one form, or null where it has no account. */
export type FindCredential = (email: string) => Promise<Credential | null>

/** @param needsConfirmedEmail whether only accounts whose address is confirmed log in */
export function createFindCredential(database: Database, needsConfirmedEmail: boolean): FindCredential {
  const columns = Prisma.sql`
    id, password_hash AS "passwordHash", credential_version AS "credentialVersion",
    disabled_at IS NULL AND (email_confirmed_at IS NOT NULL OR NOT ${needsConfirmedEmail}::boolean) AS "mayLogIn"`
  return gather({
    async one(email) {
      const [user] = await rawQuery<Credential>(
        database,
        Prisma.sql`SELECT ${columns} FROM users WHERE email = ${email}`,
      )
      return user ?? null
    },
    async several(emails) {
      const sql = Prisma.sql`SELECT email, ${columns} FROM users WHERE email = ANY (${emails}::text[])`
      const rows = await rawQuery<Credential & Pick<User, 'email'>>(database, sql)
      const found = new Map(rows.map(({ email, ...user }) => [email, user]))
      return emails.map((email) => found.get(email) ?? null)
    },
  })
}

/** Accounts that the old system vouches for: made, or given the hash that they came without, at their first login. */
interface VouchedFor {
  email: string
  /** Of the password that the old system verified. */
  passwordHash: string
}

type CompletedAccount = { userId: string; credentialVersion: number }

/**
 * Makes the account of an address that was unknown when the password was verified. Undefined where one was made meanwhile: it may be
 * anybody's.
 */
async function createVouchedFor(
  database: Database,
  { email, passwordHash }: VouchedFor,
): Promise<CompletedAccount | undefined> {
  const sql = Prisma.sql`
    INSERT INTO users (id, email, password_hash, updated_at) VALUES (${newId()}::uuid, ${email}, ${passwordHash}, now())
    ON CONFLICT DO NOTHING RETURNING id AS "userId", credential_version AS "credentialVersion"`
  const [created] = await rawQuery<CompletedAccount>(database, sql)
  return created
}

/** Gives an account the hash that it came without. One that has a hash by now keeps it. */
async function completeAccount(database: Database, userId: string, passwordHash: string): Promise<void> {
  await rawQuery(
    database,
    Prisma.sql`
      UPDATE users SET password_hash = ${passwordHash}, updated_at = now()
      WHERE id = ${userId}::uuid AND password_hash = ${ASK_OLD_SYSTEM}`,
  )
}
