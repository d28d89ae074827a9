/** POST /v1/login: loads the credential, verifies it (or a decoy), and opens a session. The hash is upgraded after the answer. */

import { type Database, gather, Prisma, rawQuery, type User } from '@spillway/prisma'
import { ACCOUNTS } from '@spillway/queue/wire/job'
import { ASK_OLD_SYSTEM, storedHashDigest } from '@spillway/queue/wire/stored-hash'
import { ApiError } from '../plugins/errors.js'
import { generationOf } from '../plugins/guessing/device-token.js'
import { TokenBody } from '../schemas/bodies.js'
import { EmailField, normalizeEmail, PasswordField, passwordForms } from '../schemas/credentials.js'
import { guessingHeaders, schemaOf, unauthorizedProblem } from '../schemas/responses.js'
import { hasTombstone } from '../sessions/deleted-addresses.js'
import { guesser } from './access.js'
import { StartAgain } from './operation.js'
import { defineOperation } from './public-operation.js'

/** The user of an unknown address. */
const NOBODY = '00000000-0000-0000-0000-000000000000'
/** Of an account that was just made: the default of its column. */
const FIRST_CREDENTIAL_VERSION = 1

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
    const { user, ask } = await findCredential(email)
    await login.confirm(user === null ? undefined : generationOf({ ...user, userId: user.id }))
    const request = {
      ...passwordForms(password),
      owner: ACCOUNTS,
      // A decoy for an account that may not log in yet: a right password would take longer to be refused than a wrong one.
      storedHash: user?.mayLogIn ? user.passwordHash : null,
      ...(asksOldSystem ? { oldSystem: { email, ask } } : {}),
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
    { sessions, issueTokens, upgrades, guessing },
    { verified, attempt, email, ...known },
    { verdict, client, ...job },
  ) {
    const isKnown = known.userId !== NOBODY
    const vouchedHash = verdict.kind === 'match' && email !== undefined ? verdict.hash : undefined
    if (verdict.kind !== 'match' || !(isKnown || vouchedHash !== undefined))
      throw new ApiError('invalid_credentials', { reason: isKnown ? 'wrong_password' : 'unknown_account' })
    const opening = { id: job.id, credentialVersion: known.credentialVersion, ...client }
    const session =
      email === undefined || vouchedHash === undefined
        ? await sessions.open({ ...opening, userId: known.userId })
        : await sessions.openVouchedFor(
            { ...opening, userId: isKnown ? known.userId : null },
            { email, passwordHash: vouchedHash },
          )
    // Another login made the account meanwhile, or it is anybody's: the password is verified against its hash.
    if (session === 'stale' && vouchedHash !== undefined) throw new StartAgain()
    if (session === 'stale') throw new ApiError('invalid_credentials', { reason: 'password_changed' })
    if (session === 'exists') throw new ApiError('ticket_used')
    const { userId } = session
    const credentialVersion = isKnown ? known.credentialVersion : FIRST_CREDENTIAL_VERSION
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
  /** Whether it came without a hash, and the old system may be asked. */
  mayBeAsked: boolean
}

export interface FoundCredential {
  /** Null where the address has no account. */
  user: Credential | null
  /** Whether the old system is to be asked. */
  ask: boolean
}

/** Resolves with the credential of an address in its one form. */
export type FindCredential = (email: string) => Promise<FoundCredential>

type Row = { address: string; hadAccount: boolean } & (Credential | { id: null })

/**
 * @param options.needsConfirmedEmail whether only accounts whose address is confirmed log in
 * @param options.asksOldSystem whether the old system is asked about accounts that are not here yet, or came without a hash
 */
export function createFindCredential(
  database: Database,
  options: { needsConfirmedEmail: boolean; asksOldSystem: boolean },
): FindCredential {
  const { needsConfirmedEmail, asksOldSystem } = options
  async function several(emails: readonly string[]): Promise<FoundCredential[]> {
    const hadAccount = asksOldSystem
      ? Prisma.sql`id IS NULL AND ${hasTombstone(Prisma.sql`address`)}`
      : Prisma.sql`false`
    const rows = await rawQuery<Row>(
      database,
      Prisma.sql`
        SELECT address, id, password_hash AS "passwordHash", credential_version AS "credentialVersion",
          disabled_at IS NULL AND (email_confirmed_at IS NOT NULL OR NOT ${needsConfirmedEmail}::boolean) AS "mayLogIn",
          disabled_at IS NULL AND password_hash = ${ASK_OLD_SYSTEM} AS "mayBeAsked", ${hadAccount} AS "hadAccount"
        FROM unnest(${emails}::text[]) AS asked (address) LEFT JOIN users ON email = address`,
    )
    const found = new Map(rows.map((row) => [row.address, row]))
    return emails.map((email) => {
      const row = found.get(email)
      if (row === undefined || row.id === null) return { user: null, ask: asksOldSystem && row?.hadAccount !== true }
      return { user: row, ask: asksOldSystem && row.mayBeAsked }
    })
  }
  return gather({ several, one: async (email) => (await several([email]))[0] ?? { user: null, ask: false } })
}
