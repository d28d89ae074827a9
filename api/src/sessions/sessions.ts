/**
 * Sessions: families of opaque refresh tokens, stored as SHA-256, each valid for one refresh. The reuse of a token means that two parties
 * hold the family, and ends the session for both (RFC 9700, 4.14.2). There are two exceptions, for tabs that refresh at once and for lost
 * answers: a short grace period, and after it the network that got an answer which nobody used. All times are PostgreSQL's, where they are
 * compared.
 */
import { type Database, Prisma, rawQuery } from '@spillway/prisma'
import { ApiError } from '../problems/errors.js'
import {
  createRotate,
  type Ended,
  endByReuse,
  ended,
  endFamily,
  isAlive,
  type Rotated,
  type Shown,
} from './refresh-rotation.js'
import type { RefreshTokenTags } from './refresh-tokens.js'
import {
  createOpenSession,
  type NewSession,
  type OpeningOptions,
  openVouchedFor,
  type VouchedFor,
} from './session-opening.js'

export interface Sessions {
  /** Whether a gateway with our keys made this refresh token, from memory. Its session may have ended. */
  isOurs(refreshToken: string): boolean
  /**
   * Opens a session with the id of the job that verified the password. Returns it with its first refresh token. Returns `stale` when the
   * password was changed since the job was added, or the address lacks a required confirmation; `exists` when this job has opened its
   * session before. Of a user who has too many sessions, the oldest end.
   */
  open(session: NewSession): Promise<Rotated | 'stale' | 'exists'>
  /** The same for an account that the old system vouches for: see {@link openVouchedFor}. */
  openVouchedFor(
    session: Omit<NewSession, 'userId'> & { userId: string | null },
    vouchedFor: VouchedFor,
  ): Promise<Rotated | 'stale' | 'exists'>
  /**
   * Returns the successor of a refresh token; the token that was replaced last may return the same one again, see {@link createRotate}.
   * When the token was used before, ends its session and returns that.
   */
  refresh(shown: Shown): Promise<Rotated | Ended | 'invalid'>
  /** Ends the session of a refresh token, current or used, and returns it; does nothing for an unknown one. */
  end(refreshToken: string): Promise<Ended | undefined>
  /** The user of a session. Throws `invalid_token` once it has ended, so that a logout takes effect at once. */
  userOf(session: { sessionId: string; userId: string }): Promise<SessionUser>
  /** Whether a session of a user is alive. */
  goesOn(session: { sessionId: string; userId: string }): Promise<boolean>
  /** The live sessions of a user, the newest first: at most {@link LISTED_MAX}. */
  list(userId: string): Promise<LiveSession[]>
  /** Ends a session of a user. Returns whether it was alive. */
  endOne(session: { sessionId: string; userId: string }): Promise<boolean>
  /** Ends all sessions of a user, as part of a transaction. */
  endAll(userId: string, transaction: Prisma.TransactionClient): Promise<void>
  /** Ends all sessions of a user but one, as part of a transaction if there is one. Returns how many were alive. */
  endOthers(
    sessions: { userId: string; keptSessionId: string },
    transaction?: Prisma.TransactionClient,
  ): Promise<number>
}

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

export type LiveSession = {
  id: string
  device: string | null
  address: string | null
  createdAt: Date
  /** When its refresh token was last replaced, or its login. */
  lastUsedAt: Date
  /** When it ends unless it is used. */
  expiresAt: Date
}

type Dates = 'createdAt' | 'lastUsedAt' | 'expiresAt'
type LiveSessionRow = Omit<LiveSession, Dates> & Record<Dates, string>

export function createSessions(database: Database, tags: RefreshTokenTags, options: OpeningOptions): Sessions {
  const openSession = createOpenSession(database, options)
  const rotate = createRotate(database, options)
  const tagged = (rotated: Rotated): Rotated => ({ ...rotated, refreshToken: tags.tag(rotated.refreshToken) })

  return {
    isOurs: (refreshToken) => tags.untag(refreshToken) !== undefined,

    async open(session) {
      const opened = await openSession(session)
      return typeof opened === 'string' ? opened : tagged(opened)
    },

    async openVouchedFor(session, vouchedFor) {
      const opened = await openVouchedFor(database, session, vouchedFor, options)
      return typeof opened === 'string' ? opened : tagged(opened)
    },

    async refresh({ token: shown, network }) {
      const token = tags.untag(shown)
      if (token === undefined) return 'invalid'
      const rotated = await rotate({ token, network })
      if (rotated !== undefined) return tagged(rotated)
      return (await endByReuse(database, token)) ?? 'invalid'
    },

    async end(refreshToken) {
      const token = tags.untag(refreshToken)
      return token === undefined ? undefined : await endFamily(database, token)
    },

    async userOf({ sessionId, userId }) {
      // One statement: between two the account may be deleted.
      const sql = Prisma.sql`
        SELECT users.id, email, email_confirmed_at IS NOT NULL AS "isConfirmed", password_hash AS "passwordHash",
          credential_version AS "credentialVersion", users.created_at AS "createdAt"
        FROM users JOIN sessions ON user_id = users.id
        WHERE users.id = ${userId}::uuid AND sessions.id = ${sessionId}::uuid AND ${isAlive}`
      const [user] = await rawQuery<Omit<SessionUser, 'createdAt'> & { createdAt: string }>(database, sql)
      if (user === undefined) throw new ApiError('invalid_token')
      return { ...user, createdAt: new Date(user.createdAt) }
    },

    async goesOn({ sessionId, userId }) {
      const sql = Prisma.sql`SELECT FROM sessions WHERE id = ${sessionId}::uuid AND user_id = ${userId}::uuid AND ${isAlive}`
      return (await rawQuery(database, sql)).length > 0
    },

    async list(userId) {
      const sql = Prisma.sql`
        SELECT id, device, address, created_at AS "createdAt", coalesce(replaced_at, created_at) AS "lastUsedAt",
          least(expires_at, idle_ends_at) AS "expiresAt"
        FROM sessions WHERE user_id = ${userId}::uuid AND ${isAlive} ORDER BY created_at DESC LIMIT ${LISTED_MAX}`
      const rows = await rawQuery<LiveSessionRow>(database, sql)
      return rows.map(({ createdAt, lastUsedAt, expiresAt, ...session }) => ({
        ...session,
        createdAt: new Date(createdAt),
        lastUsedAt: new Date(lastUsedAt),
        expiresAt: new Date(expiresAt),
      }))
    },

    async endOne({ sessionId, userId }) {
      return (await endWhere(database, Prisma.sql`id = ${sessionId}::uuid AND user_id = ${userId}::uuid`)) > 0
    },

    async endAll(userId, transaction) {
      await endWhere(transaction, Prisma.sql`user_id = ${userId}::uuid`)
    },

    async endOthers({ userId, keptSessionId }, transaction = database) {
      return endWhere(transaction, Prisma.sql`user_id = ${userId}::uuid AND id <> ${keptSessionId}::uuid`)
    },
  }
}

/** Ends the live sessions of this condition. Returns their number. */
function endWhere(database: Pick<Database, '$executeRaw'>, condition: Prisma.Sql): Promise<number> {
  return database.$executeRaw`UPDATE sessions SET ${ended} WHERE ${condition} AND ${isAlive}`
}
