/**
 * Sessions: families of opaque refresh tokens, stored as SHA-256, each valid for one refresh. Reuse
 * of a token means that two parties hold the family, and ends the session (RFC 9700, 4.14.2). There
 * are two exceptions, for concurrent tabs and lost answers: a short grace period, and after it the
 * network that got an answer which nobody used. All times are PostgreSQL's.
 */
import { type Database, gather, Prisma, rawQuery } from '@spillway/prisma'
import type { FromSchema } from 'json-schema-to-ts'
import { ApiError, orUnknown } from '../http/errors.js'
import type { AccountSessionBody } from '../schemas/bodies.js'
import {
  type Digest,
  digest,
  type Family,
  familyOf,
  newSalt,
  type RefreshTokenTags,
  successorOf,
} from './refresh-tokens.js'

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

/**
 * How often a lost answer may be asked for after its grace period, in seconds. Otherwise two
 * parties in one network who hold a session could each ask after every refresh of the other.
 */
const ASKED_AGAIN_EVERY_S = 6 * 3_600

export interface RotationOptions {
  /** How long the last replaced token returns the same successor again, in seconds. */
  refreshGraceS: number
  /** How long a session lives without a refresh, in seconds. */
  sessionIdleS: number
}

export const isAlive = Prisma.sql`sessions.revoked_at IS NULL AND sessions.expires_at > now() AND sessions.idle_ends_at > now()`

/** The columns of {@link TokenSubject} except the ids, from `sessions` and `users`. */
export const subjectColumns = Prisma.sql`
  floor(extract(epoch FROM sessions.created_at))::float8 AS "authTimeS", email, email_confirmed_at IS NOT NULL AS "isConfirmed"`

/** Ends a session and sets its expiry: old rows would slow down all queries of their user. */
export const ended = Prisma.sql`revoked_at = now(), expires_at = now()`

/** When a session with a new token ends, unless it is refreshed. */
export function idleEnd({ sessionIdleS }: RotationOptions): Prisma.Sql {
  return Prisma.sql`now() + make_interval(secs => ${sessionIdleS}::int)`
}

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

export class Sessions {
  readonly #database: Database
  readonly #tags: RefreshTokenTags
  readonly #rotate: (rotation: Rotation) => Promise<RotatedRow | undefined>

  constructor(database: Database, tags: RefreshTokenTags, options: RotationOptions) {
    this.#database = database
    this.#tags = tags
    // Tokens that wait together are replaced by one statement.
    this.#rotate = gather<Rotation, RotatedRow | undefined>({
      one: async (rotation) => (await rotateAll(database, [rotation], options))[0],
      keyOf: ({ sessionId }) => sessionId,
      async several(rotations) {
        const rows = await rotateAll(database, rotations, options, notLocked(rotations))
        const rotated = new Map(rows.map((row) => [row.sessionId, row]))
        return rotations.map(({ sessionId }) => rotated.get(sessionId))
      },
    })
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
}

/** If two replace one token, the second waits for the row lock. Both get the same successor. */
function rotateAll(
  database: Database,
  rotations: readonly Rotation[],
  options: RotationOptions,
  condition = Prisma.empty,
): Promise<RotatedRow[]> {
  const { refreshGraceS: graceS } = options
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
      idle_ends_at = CASE WHEN ${isLiving} THEN ${idleEnd(options)} ELSE idle_ends_at END,
      previous_hash = shown
    FROM users, unnest(
      ${rotations.map(({ sessionId }) => sessionId)}::uuid[], ${rotations.map(({ familyHash }) => familyHash)}::bytea[],
      ${rotations.map(({ shown }) => shown)}::bytea[], ${rotations.map(({ next }) => next)}::bytea[],
      ${rotations.map(({ salt }) => salt)}::bytea[], ${rotations.map(({ network }) => network)}::text[]
    ) AS asked (session_id, family, shown, next, next_salt, network)
    WHERE sessions.id = session_id AND family_hash = family AND users.id = user_id AND ${isAlive} ${condition}
      AND (${isLiving} OR previous_hash = shown AND ${graceS}::int > 0 AND (${isInGrace} OR ${mayAskAgain}))
    RETURNING sessions.id AS "sessionId", user_id AS "userId", ${subjectColumns}, salt`
  return rawQuery<RotatedRow>(database, sql)
}

/** Skips locked sessions: each of them would delay all others. */
function notLocked(rotations: readonly Rotation[]): Prisma.Sql {
  return Prisma.sql`AND sessions.id = ANY (ARRAY(
    SELECT id FROM sessions WHERE id = ANY (${rotations.map(({ sessionId }) => sessionId)}::uuid[]) FOR NO KEY UPDATE SKIP LOCKED))`
}

function endWhere(database: Prisma.TransactionClient, condition: Prisma.Sql): Promise<number> {
  return database.$executeRaw`UPDATE sessions SET ${ended} WHERE ${condition} AND ${isAlive}`
}
