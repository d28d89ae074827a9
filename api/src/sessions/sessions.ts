/**
 * Sessions: families of opaque refresh tokens, stored as SHA-256, each valid for one refresh. The
 * reuse of a token means that two parties hold the family, and ends the session (RFC 9700, 4.14.2).
 * Exceptions, for concurrent tabs and lost answers: a short grace period, and after it the network
 * that got an answer which nobody used. All times are PostgreSQL's.
 */
import { type Database, Prisma, rawQuery } from '@spillway/prisma'
import { ApiError } from '../plugins/errors.js'
import {
  type Ended,
  endByReuse,
  ended,
  endFamily,
  isAlive,
  type Rotated,
  type RotationOptions,
  type Shown,
  TokenRotation,
} from './refresh-rotation.js'
import type { RefreshTokenTags } from './refresh-tokens.js'

export interface SessionUser {
  id: string
  email: string
  /** Whether the address was confirmed as theirs. */
  isConfirmed: boolean
  passwordHash: string
  credentialVersion: number
  createdAt: Date
}

/** Nobody reads a longer list. */
export const LISTED_MAX = 100

type LiveSession = {
  id: string
  device: string | null
  address: string | null
  createdAt: string
  /** When its refresh token was last replaced, or its login. */
  lastUsedAt: string
  /** When it ends unless it is used. */
  expiresAt: string
}

export class Sessions {
  readonly #database: Database
  readonly #tags: RefreshTokenTags
  readonly #rotation: TokenRotation

  constructor(database: Database, tags: RefreshTokenTags, options: RotationOptions) {
    this.#database = database
    this.#tags = tags
    this.#rotation = new TokenRotation(database, options)
  }

  /** Whether a gateway with our keys made this refresh token, from memory. */
  isOurs(refreshToken: string): boolean {
    return this.#tags.untag(refreshToken) !== undefined
  }

  /** Returns the successor of a refresh token; or its session, ended because it was used before. */
  async refresh({ token: shown, network }: Shown): Promise<Rotated | Ended | 'invalid'> {
    const token = this.#tags.untag(shown)
    if (token === undefined) return 'invalid'
    const rotated = await this.#rotation.rotate({ token, network })
    if (rotated === undefined) return (await endByReuse(this.#database, token)) ?? 'invalid'
    return { ...rotated, refreshToken: this.#tags.tag(rotated.refreshToken) }
  }

  /** Ends the session of a refresh token, current or used, and returns it. */
  async end(refreshToken: string): Promise<Ended | undefined> {
    const token = this.#tags.untag(refreshToken)
    return token === undefined ? undefined : await endFamily(this.#database, token)
  }

  /** The user of a session. Throws `invalid_token` once it has ended: logouts act at once. */
  async userOf({ sessionId, userId }: SessionOfUser): Promise<SessionUser> {
    // One statement: between two the account may be deleted.
    const sql = Prisma.sql`
      SELECT users.id, email, email_confirmed_at IS NOT NULL AS "isConfirmed", password_hash AS "passwordHash",
        credential_version AS "credentialVersion", users.created_at AS "createdAt"
      FROM users JOIN sessions ON user_id = users.id
      WHERE users.id = ${userId}::uuid AND sessions.id = ${sessionId}::uuid AND ${isAlive}`
    const [user] = await rawQuery<Omit<SessionUser, 'createdAt'> & { createdAt: string }>(this.#database, sql)
    if (user === undefined) throw new ApiError('invalid_token')
    return { ...user, createdAt: new Date(user.createdAt) }
  }

  async goesOn({ sessionId, userId }: SessionOfUser): Promise<boolean> {
    const sql = Prisma.sql`SELECT FROM sessions WHERE id = ${sessionId}::uuid AND user_id = ${userId}::uuid AND ${isAlive}`
    return (await rawQuery(this.#database, sql)).length > 0
  }

  /** The live sessions of a user, the newest first: at most {@link LISTED_MAX}. */
  async list(userId: string): Promise<LiveSession[]> {
    const sql = Prisma.sql`
      SELECT id, device, address, created_at AS "createdAt", coalesce(replaced_at, created_at) AS "lastUsedAt",
        least(expires_at, idle_ends_at) AS "expiresAt"
      FROM sessions WHERE user_id = ${userId}::uuid AND ${isAlive} ORDER BY created_at DESC LIMIT ${LISTED_MAX}`
    const rows = await rawQuery<LiveSession>(this.#database, sql)
    const iso = (text: string) => new Date(text).toISOString()
    return rows.map(({ createdAt, lastUsedAt, expiresAt, ...session }) => ({
      ...{ ...session, createdAt: iso(createdAt), lastUsedAt: iso(lastUsedAt), expiresAt: iso(expiresAt) },
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

  /** Ends all sessions of a user but one. Returns how many were alive. */
  endOthers(
    { userId, keptSessionId }: { userId: string; keptSessionId: string },
    transaction: Pick<Database, '$executeRaw'> = this.#database,
  ): Promise<number> {
    return endWhere(transaction, Prisma.sql`user_id = ${userId}::uuid AND id <> ${keptSessionId}::uuid`)
  }
}

interface SessionOfUser {
  sessionId: string
  userId: string
}

function endWhere(database: Pick<Database, '$executeRaw'>, condition: Prisma.Sql): Promise<number> {
  return database.$executeRaw`UPDATE sessions SET ${ended} WHERE ${condition} AND ${isAlive}`
}
