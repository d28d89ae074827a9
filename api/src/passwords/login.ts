/** POST /v1/login: verifies the credential, or a dummy hash, and opens a session. */

import { type Database, gather, Prisma, rawQuery } from '@spillway/prisma'
import { type JobRef, type PasswordClient, PasswordClientError } from '@spillway/queue/client'
import { ACCOUNTS } from '@spillway/queue/wire/job'
import { objectOf } from '@spillway/queue/wire/object-schema'
import { upgradeOf } from '@spillway/queue/wire/reply'
import { NO_PASSWORD, type RehashMode, storedHashDigest } from '@spillway/queue/wire/stored-hash'
import type { FastifyBaseLogger } from 'fastify'
import { ApiError, type RefusalReason } from '../http/problems.js'
import { generationOf } from '../limits/guessing.js'
import { EmailField, normalizeEmail, PasswordField, passwordForms } from '../schemas/credentials.js'
import { guessingHeaders, TokenBody, unauthorizedProblem } from '../schemas/responses.js'
import type { Deps } from '../servers.js'
import { defineEndpoint, recordEnding, schemaOf } from './endpoint.js'

const BARRED = [null, 'account_disabled', 'address_unconfirmed', 'no_password'] as const
const NOBODY = '00000000-0000-0000-0000-000000000000'
const UNKNOWN = { id: NOBODY, credentialVersion: 0, passwordHash: '' }

const RememberedAttempt = objectOf({
  id: { type: 'string' },
  account: { type: 'string' },
  device: { type: ['string', 'null'] },
  network: { type: 'string' },
  failures: { type: 'integer' },
})

export const login = defineEndpoint({
  route: {
    kind: 'login',
    method: 'POST',
    url: '/v1/login',
    operationId: 'login',
    tags: ['Sessions'],
    summary: 'Log in',
    description:
      'A wrong password and an unknown address get the same 401. The time is also the same if the stored hash follows the current policy. ' +
      'Failed logins from unknown devices, which have never logged in to the account, are counted together. After several failures, the next ' +
      'login from an unknown device must wait, longer after each failure.',
    headers: guessingHeaders,
    body: schemaOf({ title: 'Credentials', ...objectOf({ email: EmailField, password: PasswordField }) }),
    success: { status: 200, body: schemaOf(TokenBody) },
    problems: { 401: unauthorizedProblem },
  },
  remembered: schemaOf(
    objectOf({
      /** {@link NOBODY} for an unknown address, whose job verifies a dummy hash. */
      userId: { type: 'string' },
      credentialVersion: { type: 'integer' },
      /** Why the account does not allow logins, as an index of {@link BARRED}. */
      barred: { type: 'integer', minimum: 0, maximum: BARRED.length - 1 },
      /** The digest of the hash that is verified. */
      verified: { type: 'string' },
      attempt: RememberedAttempt,
    }),
  ),

  async start(deps: Deps, { body, request, reply, earlier }) {
    const { credentials, guessing, upgrades } = deps
    const email = normalizeEmail(body.email)
    let letIn = earlier === undefined ? await guessing.letIn(email, request, reply) : undefined
    try {
      const user = await credentials.find(email)
      const generation = user === null ? undefined : generationOf({ ...user, userId: user.id })
      if (letIn !== undefined) letIn = await guessing.confirm(letIn, generation, request.ip, reply)
      const attempt = letIn?.attempt ?? earlier?.attempt
      if (attempt === undefined) throw new ApiError('internal_error')
      const isBehind = letIn?.isBehind ?? !(await guessing.mayStart(attempt))
      // The same length for an unknown address, so that a ticket does not reveal it.
      const { id: userId, credentialVersion, passwordHash } = user ?? UNKNOWN
      const barred = user === null ? 0 : BARRED.indexOf(user.barredBy)
      const verified = storedHashDigest(passwordHash)
      return {
        remembered: { userId, credentialVersion, barred, verified, attempt },
        isKnownDevice: attempt.device !== null,
        job: isBehind
          ? undefined
          : {
              name: 'verify',
              request: {
                ...passwordForms(body.password),
                owner: ACCOUNTS,
                // A dummy hash if the account does not allow logins: otherwise a correct password
                // would be refused later than a wrong one.
                storedHash: user?.barredBy === null ? user.passwordHash : null,
                ...upgrades.request,
              },
            },
      }
    } catch (error) {
      if (letIn !== undefined) guessing.end(letIn.attempt, 'nothing')
      throw error
    }
  },

  async finish(deps, { userId, credentialVersion, barred, verified, attempt }, { id, job, result, client }) {
    const { database, sessions, tokenIssuer, tokenCarrier, upgrades, guessing } = deps
    const isKnown = userId !== NOBODY
    if (result.kind !== 'match' || !isKnown)
      throw new ApiError('invalid_credentials', { reason: reasonOf(isKnown, barred) })
    const session = await sessions.open({ id, userId, credentialVersion, ...client })
    if (session === 'stale') {
      const reason = await changeSince(database, { userId, credentialVersion, verified })
      throw new ApiError('invalid_credentials', { reason })
    }
    if (result.hashFollows) upgrades.follow(job, { userId, verified })
    const tokens = await tokenIssuer.issue(session)
    const deviceToken = guessing.issueDeviceToken(attempt.account, { userId, credentialVersion })
    return tokenCarrier.answer({ ...tokens, deviceToken })
  },

  ended(deps, { userId, attempt }, ending) {
    const { guessing } = deps
    const { kind, error, id } = ending
    const hasFailed = error?.code === 'invalid_credentials'
    if (kind === 'succeeded') guessing.end(attempt, 'succeeded')
    else if (hasFailed) guessing.end(attempt, 'failed')
    else if (kind === 'unanswered') guessing.end(attempt, 'nothing')
    const { device, failures } = attempt
    recordEnding(deps, 'login', ending, {
      userId: userId === NOBODY ? null : userId,
      isKnownDevice: device !== null,
      ...(kind === 'succeeded' ? { sessionId: id } : {}),
      ...(hasFailed ? { failures: failures + 1 } : {}),
    })
  },
})

/** What has changed since the password of an account was verified, so that it opens no session. */
async function changeSince(
  database: Database,
  { userId, credentialVersion, verified }: { userId: string; credentialVersion: number; verified: string },
): Promise<RefusalReason> {
  const user = await database.user.findUnique({ where: { id: userId } })
  if (user === null) return 'unknown_account'
  if (user.disabledAt !== null) return 'account_disabled'
  if (user.credentialVersion === credentialVersion && user.emailConfirmedAt === null) return 'address_unconfirmed'
  // An operator who ends all sessions changes the version, and not the hash.
  return storedHashDigest(user.passwordHash) === verified ? 'sessions_ended' : 'password_changed'
}

/** For a password that did not match. The password of a barred account was not verified. */
function reasonOf(isKnown: boolean, barred: number): RefusalReason {
  return isKnown ? (BARRED[barred] ?? 'wrong_password') : 'unknown_account'
}

type Credential = {
  id: string
  passwordHash: string
  credentialVersion: number
  /**
   * Why the account does not allow logins: an operator disabled it, its address is not confirmed,
   * or it was imported without a password.
   */
  barredBy: 'account_disabled' | 'address_unconfirmed' | 'no_password' | null
}

/** Finds the credentials of addresses. Lookups that wait together run as one statement. */
export class Credentials {
  readonly #database: Database
  readonly #needsConfirmedEmail: boolean
  /** Null if the address has no account. */
  readonly find: (email: string) => Promise<Credential | null>

  constructor(database: Database, { needsConfirmedEmail }: { needsConfirmedEmail: boolean }) {
    this.#database = database
    this.#needsConfirmedEmail = needsConfirmedEmail
    this.find = gather({
      several: (emails: readonly string[]) => this.#findAll(emails),
      one: async (email) => (await this.#findAll([email]))[0] ?? null,
    })
  }

  async #findAll(emails: readonly string[]): Promise<(Credential | null)[]> {
    const rows = await rawQuery<Credential & { email: string }>(
      this.#database,
      Prisma.sql`
        SELECT email, id, password_hash AS "passwordHash", credential_version AS "credentialVersion",
          CASE WHEN disabled_at IS NOT NULL THEN 'account_disabled'
            WHEN password_hash = ${NO_PASSWORD} THEN 'no_password'
            WHEN email_confirmed_at IS NULL AND ${this.#needsConfirmedEmail}::boolean THEN 'address_unconfirmed'
            END AS "barredBy"
        FROM users WHERE email = ANY (${emails}::text[])`,
    )
    const found = new Map(rows.map(({ email, ...credential }) => [email, credential]))
    return emails.map((email) => found.get(email) ?? null)
  }
}

// Upgrades of stored hashes. The result announces a new hash, the login is answered, and the new hash
// is stored when it arrives. If it is lost, the next login makes another one.

/** The most new hashes to wait for: slow workers must not fill the memory of a gateway. */
const FOLLOWED_MAX = 1_000

interface HashUpgradesOptions {
  passwords: PasswordClient
  database: Database
  mode: RehashMode
  log: FastifyBaseLogger
}

export class HashUpgrades {
  readonly #options: HashUpgradesOptions
  readonly #followed = new Set<Promise<void>>()
  readonly #closing = new AbortController()
  /** Fields of the verify request of a login. */
  readonly request: { rehash: false } | { upgrade: RehashMode }

  constructor(options: HashUpgradesOptions) {
    const { mode } = options
    this.#options = options
    this.request = mode === 'never' ? { rehash: false } : { upgrade: mode }
  }

  /** Stores the new hash of a job, if the digest of the stored hash is still `verified`. Never throws. */
  follow(job: JobRef, over: { userId: string; verified: string }): void {
    if (this.#followed.size >= FOLLOWED_MAX || this.#closing.signal.aborted) return
    const stored = this.#store(job, over)
      .catch((error: unknown) => {
        const isClosed = error instanceof PasswordClientError && error.code === 'wait_aborted'
        const message = 'a new hash was not stored: the next login makes another'
        if (!isClosed) this.#options.log.warn({ err: error, jobId: job.id }, message)
      })
      .finally(() => this.#followed.delete(stored))
    this.#followed.add(stored)
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await Promise.all(this.#followed)
  }

  async #store(job: JobRef, { userId, verified }: { userId: string; verified: string }): Promise<void> {
    const { passwords, database } = this.#options
    const waitMs = Math.max(0, job.deadline - passwords.now())
    const expected = await passwords.resume(upgradeOf(job))
    const result = await expected.result(waitMs, this.#closing.signal)
    if (typeof result !== 'object' || result.kind !== 'hashed') return
    // A change of the password or another login may have replaced the hash meanwhile.
    const sql = Prisma.sql`
      UPDATE users SET password_hash = ${result.hash}, updated_at = now()
      WHERE id = ${userId}::uuid AND encode(sha256(convert_to(password_hash, 'UTF8')), 'base64') = ${verified}`
    await rawQuery(database, sql)
  }
}
