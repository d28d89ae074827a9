/**
 * Sessions: families of opaque refresh tokens, stored as SHA-256, each valid for one refresh. Reuse
 * of a token means that two parties hold the family, and ends the session (RFC 9700, 4.14.2). There
 * are two exceptions, for concurrent tabs and lost answers: a short grace period, and after it the
 * network that got an answer which nobody used. All times are PostgreSQL's.
 */
import { createHmac, hash, randomBytes, randomInt } from 'node:crypto'
import { type Database, gather, Prisma, rawQuery } from '@spillway/prisma'
import type { Keyring } from '@spillway/queue/client'
import type { FastifyRequest } from 'fastify'
import type { FromSchema } from 'json-schema-to-ts'
import { ApiError, orUnknown } from '../http/problems.js'
import { withoutPort } from '../http/requests.js'
import { isSigned } from '../limits/guessing.js'
import type { AccountSessionBody } from '../schemas/responses.js'

export type SessionOfUser = { sessionId: string; userId: string }

/** A session and its user, as the claims of access tokens name them. */
export type TokenSubject = SessionOfUser & {
  /** When the user logged in, in seconds since 1970. */
  authTimeS: number
  email: string
  /** Whether the address was confirmed as theirs. */
  isConfirmed: boolean
}

export type Rotated = TokenSubject & { refreshToken: string }

export interface SessionOptions {
  /** How long a session lives if it is refreshed, in seconds. */
  sessionTtlS: number
  /** How long a session lives without a refresh, in seconds. */
  sessionIdleS: number
  /** How long the last replaced token returns the same successor again, in seconds. */
  refreshGraceS: number
  /** Whether an account needs a confirmed address to open sessions. */
  needsConfirmedEmail: boolean
}

/** About the most live sessions of a user: a change of the password can end them in time. */
export const LIVE_MAX = 1_000
/**
 * One opening of this many, chosen at random, looks for sessions beyond the maximum. With a
 * probability of 10^-9, 500 consecutive openings do not look. A look reads all rows of the user,
 * including sessions that ended within the last day: 430,000 rows at five logins a second.
 */
const OPENINGS_PER_LOOK = 25
/** The most sessions that one look ends, far within the statement timeout of 5 s. */
const ENDED_MAX = 1_000

/**
 * How often a lost answer may be asked for after its grace period, in seconds. Otherwise two
 * parties in one network who hold a session could each ask after every refresh of the other.
 */
const ASKED_AGAIN_EVERY_S = 6 * 3_600

interface NewSession extends SessionClient {
  /** The id of the job that verified the password. */
  id: string
  userId: string
  credentialVersion: number
}

type Opening = NewSession & { refreshToken: string }

/** A token that a client sent, and the network of the client. */
interface Shown {
  token: string
  network: string
}

interface Rotation extends Family {
  shown: Digest
  /** The digest of the successor, and the salt that it is derived with. */
  next: Digest
  salt: Digest
  network: string
}
type RotatedRow = TokenSubject & Record<'salt', Uint8Array>

export type SessionUser = {
  id: string
  email: string
  /** Whether the address was confirmed as theirs. */
  isConfirmed: boolean
  passwordHash: string
  credentialVersion: number
  /** In ISO 8601. */
  createdAt: string
}

/** Nobody reads a longer list. */
export const LISTED_MAX = 100

type LiveSession = FromSchema<typeof AccountSessionBody>

const isAlive = Prisma.sql`sessions.revoked_at IS NULL AND sessions.expires_at > now() AND sessions.idle_ends_at > now()`

/** The columns of {@link TokenSubject} except the ids, from `sessions` and `users`. */
const subjectColumns = Prisma.sql`
  floor(extract(epoch FROM sessions.created_at))::float8 AS "authTimeS", email, email_confirmed_at IS NOT NULL AS "isConfirmed"`

/** Ends a session and sets its expiry: old rows would slow down all queries of their user. */
const ended = Prisma.sql`revoked_at = now(), expires_at = now()`

export class Sessions {
  readonly #database: Database
  readonly #tags: RefreshTokenTags
  readonly #options: SessionOptions
  /** Sessions that wait together are opened by one statement, and tokens replaced by one. */
  readonly #open: (opening: Opening) => Promise<TokenSubject | 'stale'>
  readonly #rotate: (rotation: Rotation) => Promise<RotatedRow | undefined>

  constructor(database: Database, keyring: Keyring, options: SessionOptions) {
    this.#database = database
    this.#tags = new RefreshTokenTags(keyring)
    this.#options = options
    this.#open = gather<Opening, TokenSubject | 'stale'>({
      one: async (opening) => (await this.#openAll([opening]))[0] ?? 'stale',
      // A second opening of a session runs separately, because a statement updates no row twice.
      keyOf: ({ id }) => id,
      several: async (openings) => {
        const rows = await this.#openAll(openings, Prisma.sql`SKIP LOCKED`)
        const opened = new Map(rows.map((session) => [session.sessionId, session]))
        return openings.map(({ id }) => opened.get(id))
      },
    })
    this.#rotate = gather<Rotation, RotatedRow | undefined>({
      one: async (rotation) => (await this.#rotateAll([rotation]))[0],
      keyOf: ({ sessionId }) => sessionId,
      several: async (rotations) => {
        const rows = await this.#rotateAll(rotations, notLocked(rotations))
        const rotated = new Map(rows.map((row) => [row.sessionId, row]))
        return rotations.map(({ sessionId }) => rotated.get(sessionId))
      },
    })
  }

  /**
   * Opens a session with the id of the job that verified the password. Returns `stale` if the
   * credential has changed since, the account is disabled, or the address lacks a required
   * confirmation. If the answer to an earlier opening was lost, nobody has its token, and the
   * session gets another one. If a user has too many sessions, the oldest ones end.
   */
  async open(session: NewSession): Promise<Rotated | 'stale'> {
    const opening = { ...session, refreshToken: newRefreshToken(session.id) }
    if (randomInt(OPENINGS_PER_LOOK) === 0) await this.#endOldest(session.userId)
    const opened = await this.#open(opening)
    if (opened === 'stale') return opened
    return { ...opened, refreshToken: this.#tags.tag(opening.refreshToken) }
  }

  /**
   * One statement checks the credentials and inserts the sessions. It returns a row for each opened
   * session. FOR SHARE waits for a change of the password, which otherwise could not end the new
   * session.
   *
   * @param orElse what FOR SHARE does with locked users, whose password may be about to change
   */
  async #openAll(openings: readonly Opening[], orElse = Prisma.empty): Promise<TokenSubject[]> {
    const { sessionTtlS, needsConfirmedEmail } = this.#options
    const sql = Prisma.sql`
      WITH asked AS (
        SELECT * FROM unnest(
          ${openings.map(({ id }) => id)}::uuid[], ${openings.map(({ userId }) => userId)}::uuid[],
          ${openings.map(({ credentialVersion }) => credentialVersion)}::int[],
          ${openings.map(({ device }) => device)}::text[], ${openings.map(({ ip }) => ip)}::text[],
          ${openings.map(({ refreshToken }) => familyOf(refreshToken)?.familyHash)}::bytea[],
          ${openings.map(({ refreshToken }) => digest(refreshToken))}::bytea[]
        ) AS asked (session_id, user_id, version, device, address, family_hash, token_hash)
      ), credential AS (
        SELECT id, email, email_confirmed_at, credential_version FROM users
        WHERE id = ANY (${openings.map(({ userId }) => userId)}::uuid[]) AND disabled_at IS NULL
          AND (email_confirmed_at IS NOT NULL OR NOT ${needsConfirmedEmail}::boolean) FOR SHARE ${orElse}
      ), fitting AS (
        SELECT asked.*, email, email_confirmed_at FROM asked
        JOIN credential ON credential.id = user_id AND credential_version = version
      ), session AS (
        INSERT INTO sessions (id, user_id, expires_at, idle_ends_at, device, address, family_hash, token_hash)
        SELECT session_id, user_id, now() + make_interval(secs => ${sessionTtlS}::int), ${this.#idleEnd()},
          device, address, family_hash, token_hash FROM fitting
        ON CONFLICT (id) DO UPDATE SET family_hash = excluded.family_hash, token_hash = excluded.token_hash
        WHERE sessions.user_id = excluded.user_id AND sessions.revoked_at IS NULL
        RETURNING id, created_at
      )
      SELECT session_id AS "sessionId", user_id AS "userId", ${subjectColumns}
      FROM fitting JOIN session AS sessions ON sessions.id = session_id`
    return await rawQuery<TokenSubject>(this.#database, sql)
  }

  /**
   * Ends the sessions beyond the maximum, and one more. Locked rows are skipped: another login is
   * ending them, and two logins that wait for each other would fail.
   */
  async #endOldest(userId: string): Promise<void> {
    await this.#database.$executeRaw`
      UPDATE sessions SET ${ended} WHERE id = ANY (ARRAY(
        SELECT id FROM sessions WHERE id IN (
          SELECT id FROM sessions WHERE user_id = ${userId}::uuid AND ${isAlive}
          ORDER BY created_at DESC OFFSET ${LIVE_MAX - 1} LIMIT ${ENDED_MAX}
        ) AND revoked_at IS NULL FOR NO KEY UPDATE SKIP LOCKED
      ))`
  }

  /** The session of a refresh token that a gateway with our keys made. Checks in memory. */
  idOf(refreshToken: string): string | undefined {
    return familyOf(this.#tags.untag(refreshToken) ?? '')?.sessionId
  }

  /**
   * Replaces the current token of a session. The last replaced token returns the same successor
   * again within the grace period. After it, only an unused successor is returned, to the network
   * from which the token was replaced, for one replacement in {@link ASKED_AGAIN_EVERY_S}. Any
   * other token ends its session, which is returned.
   */
  async refresh({ token: shown, network }: Shown): Promise<Rotated | SessionOfUser | 'invalid'> {
    const token = this.#tags.untag(shown)
    const family = token === undefined ? undefined : familyOf(token)
    if (token === undefined || family === undefined) return 'invalid'
    const salt = newSalt()
    const next = digest(successorOf(token, salt))
    const row = await this.#rotate({ ...family, shown: digest(token), next, salt, network })
    if (row === undefined)
      return (await this.#endFamily(token, Prisma.sql`AND token_hash <> ${digest(token)}`)) ?? 'invalid'
    const { salt: saltOfNext, ...subject } = row
    return { ...subject, refreshToken: this.#tags.tag(successorOf(token, saltOfNext)) }
  }

  /** If two replace one token, the second waits for the row lock. Both get the same successor. */
  #rotateAll(rotations: readonly Rotation[], condition = Prisma.empty): Promise<RotatedRow[]> {
    const { refreshGraceS: graceS } = this.#options
    const isLiving = Prisma.sql`token_hash = shown`
    const isInGrace = Prisma.sql`replaced_at > now() - make_interval(secs => ${graceS}::int)`
    // The same replacement may be asked for as often as its answer is lost.
    const mayAskAgain = Prisma.sql`replaced_from = network AND (asked_again_at IS NULL OR asked_again_at > replaced_at
      OR asked_again_at < now() - make_interval(secs => ${ASKED_AGAIN_EVERY_S}::int))`
    const sql = Prisma.sql`
      UPDATE sessions SET
        token_hash = CASE WHEN ${isLiving} THEN next ELSE token_hash END,
        salt = CASE WHEN ${isLiving} THEN next_salt ELSE salt END,
        replaced_at = CASE WHEN ${isLiving} THEN now() ELSE replaced_at END,
        replaced_from = CASE WHEN ${isLiving} THEN network ELSE replaced_from END,
        asked_again_at = CASE WHEN ${isLiving} OR ${isInGrace} THEN asked_again_at ELSE now() END,
        idle_ends_at = CASE WHEN ${isLiving} THEN ${this.#idleEnd()} ELSE idle_ends_at END,
        previous_hash = shown
      FROM users, unnest(
        ${rotations.map(({ sessionId }) => sessionId)}::uuid[], ${rotations.map(({ familyHash }) => familyHash)}::bytea[],
        ${rotations.map(({ shown }) => shown)}::bytea[], ${rotations.map(({ next }) => next)}::bytea[],
        ${rotations.map(({ salt }) => salt)}::bytea[], ${rotations.map(({ network }) => network)}::text[]
      ) AS asked (session_id, family, shown, next, next_salt, network)
      WHERE sessions.id = session_id AND family_hash = family AND users.id = user_id AND ${isAlive} ${condition}
        AND (${isLiving} OR previous_hash = shown AND ${graceS}::int > 0 AND (${isInGrace} OR ${mayAskAgain}))
      RETURNING sessions.id AS "sessionId", user_id AS "userId", ${subjectColumns}, salt`
    return rawQuery<RotatedRow>(this.#database, sql)
  }

  /** Ends the session of a refresh token, current or used, and returns it. */
  async end(refreshToken: string): Promise<SessionOfUser | undefined> {
    const token = this.#tags.untag(refreshToken)
    return token === undefined ? undefined : await this.#endFamily(token)
  }

  async #endFamily(token: string, condition = Prisma.empty): Promise<SessionOfUser | undefined> {
    const family = familyOf(token)
    if (family === undefined) return undefined
    const sql = Prisma.sql`
      UPDATE sessions SET ${ended}
      WHERE id = ${family.sessionId}::uuid AND family_hash = ${family.familyHash} AND ${isAlive} ${condition}
      RETURNING id AS "sessionId", user_id AS "userId"`
    const [session] = await orUnknown(rawQuery<SessionOfUser>(this.#database, sql))
    return session
  }

  /** The user of a session. Throws `invalid_token` once it has ended: a logout acts at once. */
  async userOf({ sessionId, userId }: SessionOfUser): Promise<SessionUser> {
    // One statement: between two statements the account may be deleted.
    const sql = Prisma.sql`
      SELECT users.id, email, email_confirmed_at IS NOT NULL AS "isConfirmed", password_hash AS "passwordHash",
        credential_version AS "credentialVersion", users.created_at AS "createdAt"
      FROM users JOIN sessions ON user_id = users.id
      WHERE users.id = ${userId}::uuid AND sessions.id = ${sessionId}::uuid AND ${isAlive}`
    const [user] = await rawQuery<SessionUser>(this.#database, sql)
    if (user === undefined) throw new ApiError('invalid_token')
    return { ...user, createdAt: new Date(user.createdAt).toISOString() }
  }

  async goesOn({ sessionId, userId }: SessionOfUser): Promise<boolean> {
    const sql = Prisma.sql`SELECT FROM sessions WHERE id = ${sessionId}::uuid AND user_id = ${userId}::uuid AND ${isAlive}`
    return (await rawQuery(this.#database, sql)).length > 0
  }

  /** The live sessions of a user, newest first, at most {@link LISTED_MAX}. */
  async list(userId: string): Promise<LiveSession[]> {
    // By the id, which has an index. A ticket may open a session later than its id says.
    const sql = Prisma.sql`
      WITH latest AS (SELECT * FROM sessions WHERE user_id = ${userId}::uuid AND ${isAlive} ORDER BY id DESC LIMIT ${LISTED_MAX})
      SELECT id, device, address, created_at AS "createdAt", coalesce(replaced_at, created_at) AS "lastUsedAt",
        least(expires_at, idle_ends_at) AS "expiresAt"
      FROM latest ORDER BY created_at DESC`
    const rows = await rawQuery<LiveSession>(this.#database, sql)
    const iso = (text: string) => new Date(text).toISOString()
    return rows.map((session) => ({
      ...session,
      createdAt: iso(session.createdAt),
      lastUsedAt: iso(session.lastUsedAt),
      expiresAt: iso(session.expiresAt),
    }))
  }

  /** Ends a session of a user. Returns whether it was alive. */
  async endOne({ sessionId, userId }: SessionOfUser): Promise<boolean> {
    return (await endWhere(this.#database, Prisma.sql`id = ${sessionId}::uuid AND user_id = ${userId}::uuid`)) > 0
  }

  /** Ends all sessions of a user, as part of a transaction. Returns how many were alive. */
  endAll(userId: string, transaction: Prisma.TransactionClient): Promise<number> {
    return endWhere(transaction, Prisma.sql`user_id = ${userId}::uuid`)
  }

  /** Ends all sessions of a user except one. Returns how many were alive. */
  endOthers(
    { userId, keptSessionId }: { userId: string; keptSessionId: string },
    transaction: Prisma.TransactionClient = this.#database,
  ): Promise<number> {
    return endWhere(transaction, Prisma.sql`user_id = ${userId}::uuid AND id <> ${keptSessionId}::uuid`)
  }

  /** When a session with a new token ends, unless it is refreshed. */
  #idleEnd(): Prisma.Sql {
    return Prisma.sql`now() + make_interval(secs => ${this.#options.sessionIdleS}::int)`
  }
}

/** Skips locked sessions: each of them would delay all others. */
function notLocked(rotations: readonly Rotation[]): Prisma.Sql {
  return Prisma.sql`AND sessions.id = ANY (ARRAY(
    SELECT id FROM sessions WHERE id = ANY (${rotations.map(({ sessionId }) => sessionId)}::uuid[]) FOR NO KEY UPDATE SKIP LOCKED))`
}

function endWhere(database: Prisma.TransactionClient, condition: Prisma.Sql): Promise<number> {
  return database.$executeRaw`UPDATE sessions SET ${ended} WHERE ${condition} AND ${isAlive}`
}

/** Longer values are cut: the beginning distinguishes devices. */
const DEVICE_MAX_LENGTH = 256
const IP_MAX_LENGTH = 64

export interface SessionClient {
  /** The User-Agent, without characters other than printable ASCII; null if it was not sent. */
  device: string | null
  /** The address that the connection or the proxy reports. */
  ip: string
}

export function sessionClientOf({ headers, ip }: FastifyRequest): SessionClient {
  const device = (headers['user-agent'] ?? '')
    .replace(/[^ -~]/g, '')
    .trim()
    .slice(0, DEVICE_MAX_LENGTH)
  return { device: device === '' ? null : device, ip: withoutPort(ip).slice(0, IP_MAX_LENGTH) }
}

// Refresh tokens: `<session>.<family>.<secret>`. The family identifies a used token without storing
// it, because only a holder of an earlier token knows it. Each secret except the first is derived
// from the previous token. So a token can return the same successor again, although only digests are
// stored.
//
// A client holds `<token>.<tag>`. The tag is signed with the seal keys, so that made-up tokens are
// refused from memory. It authenticates nothing: gateways with other keys know the same digests.

/** 128 bits for the family, as for a session id; 256 bits for the secret, which authenticates. */
const FAMILY_BYTES = 16
const SECRET_BYTES = 32
const SALT_BYTES = 32

const TOKEN = /^([\w-]{22})\.([\w-]{22})\.[\w-]{43}$/

export type Digest = Uint8Array<ArrayBuffer>

/** Only one guess in 2^128 reaches the database. */
const TAG_BYTES = 16
const TAGGED = /^(.{89})\.([\w-]{22})$/

export class RefreshTokenTags {
  readonly #keyring: Keyring

  constructor(keyring: Keyring) {
    this.#keyring = keyring
  }

  /** The token as a client gets it. */
  tag(token: string): string {
    return `${token}.${this.#tagsOf(token)[0].toString('base64url')}`
  }

  /** The token in a text from a client; undefined unless one of these keys tagged it. */
  untag(shown: string): string | undefined {
    const [, token, tag] = TAGGED.exec(shown) ?? []
    if (token === undefined || tag === undefined) return undefined
    return isSigned(this.#tagsOf(token), tag) ? token : undefined
  }

  #tagsOf(token: string): [Buffer, ...Buffer[]] {
    const [first, ...others] = this.#keyring.macs({ purpose: 'refresh-token', id: token })
    return [first.subarray(0, TAG_BYTES), ...others.map((mac) => mac.subarray(0, TAG_BYTES))]
  }
}

/** The parts that all tokens of a family share, as stored in the database. */
export interface Family {
  sessionId: string
  familyHash: Digest
}

/** The first token of a new family of a session. */
export function newRefreshToken(sessionId: string): string {
  const session = Buffer.from(sessionId.replaceAll('-', ''), 'hex').toString('base64url')
  return `${session}.${random(FAMILY_BYTES)}.${random(SECRET_BYTES)}`
}

/** The family that a token claims; undefined for a text of another format. */
export function familyOf(token: string): Family | undefined {
  const [, session, family] = TOKEN.exec(token) ?? []
  if (session === undefined || family === undefined) return undefined
  const hex = Buffer.from(session, 'base64url').toString('hex')
  return { sessionId: hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'), familyHash: digest(family) }
}

export function newSalt(): Digest {
  return randomBytes(SALT_BYTES)
}

/**
 * The successor of a token. A reader of the database has the salt and digests, and the holder of
 * the token lacks the salt: neither can compute it.
 */
export function successorOf(token: string, salt: Uint8Array): string {
  const family = token.slice(0, token.lastIndexOf('.'))
  return `${family}.${createHmac('sha256', token).update(salt).digest('base64url')}`
}

/** SHA-256: random tokens cannot be guessed, so they need no slow hash. */
export function digest(text: string): Digest {
  return hash('sha256', text, 'buffer')
}

function random(bytes: number): string {
  return randomBytes(bytes).toString('base64url')
}

/** A name for the session of a token, with or without its tag: the digest of its family. */
export function sessionNameOf(token: string): string {
  return Buffer.from(digest(token.split('.')[1] ?? '')).toString('base64url')
}
