/** Rotation of refresh tokens in the database: one statement each, safe for concurrent gateways, by PostgreSQL's clock. */
import { type Database, Prisma, rawQuery } from '@spillway/prisma'
import { digest, type Family, familyOf, newSalt, successorOf } from './refresh-tokens.js'

/** A session and its user, as access tokens tell of them. */
export type TokenSubject = {
  sessionId: string
  userId: string
  /** When the user logged in, in seconds since 1970. */
  authTimeS: number
  email: string
  /** Whether the address was confirmed as theirs. */
  isConfirmed: boolean
}

export type Rotated = TokenSubject & { refreshToken: string }

/**
 * How long after a lost answer another one may be asked for after its grace, in seconds. A client in a tunnel loses one now and then; two parties
 * in one network who hold a session would each ask again after every refresh of the other.
 */
const ASKED_AGAIN_EVERY_S = 6 * 3_600

/** A session that has just ended. */
export type Ended = Pick<TokenSubject, 'sessionId' | 'userId'>

export interface RotationOptions {
  /** How long the token that was replaced last returns the same successor again, in seconds. */
  refreshGraceS: number
  /** After this long without a refresh a session ends, in seconds. */
  sessionIdleS: number
}

/** By its absolute expiry; the expiry of its token is the end of its idle time. */
export const isAlive = Prisma.sql`sessions.revoked_at IS NULL AND sessions.expires_at > now()`

/** The columns of {@link TokenSubject} beside the ids, from `sessions` and `users`. */
export const subjectColumns = Prisma.sql`
  floor(extract(epoch FROM sessions.created_at))::float8 AS "authTimeS", email, email_confirmed_at IS NOT NULL AS "isConfirmed"`

/** Ends a session. Its expiry too: that says when the row is deleted, and rows that stayed for a month would slow all queries of their user. */
export const ended = Prisma.sql`revoked_at = now(), expires_at = now()`

/** The expiry of a token that is made now. */
export function idleEnd({ sessionIdleS }: RotationOptions): Prisma.Sql {
  return Prisma.sql`least(sessions.expires_at, now() + make_interval(secs => ${sessionIdleS}::int))`
}

/**
 * Replaces the current token of a session. The token that was replaced last returns the same successor again: within the grace period, and
 * after it while the successor was never used, to the network from which it was replaced, one replacement in {@link ASKED_AGAIN_EVERY_S}.
 * Undefined for any other token, and for sessions that have ended.
 *
 * @param network of the client that shows the token
 */
export async function rotate(
  database: Database,
  { token, network }: { token: string; network: string },
  options: RotationOptions,
): Promise<Rotated | undefined> {
  const { refreshGraceS: graceS } = options
  const family = familyOf(token)
  if (family === undefined) return undefined
  const [shown, salt] = [digest(token), newSalt()]
  const isInGrace = Prisma.sql`replaced_at > now() - make_interval(secs => ${graceS}::int)`
  // Of the same replacement as often as its answer is lost.
  const mayAskAgain = Prisma.sql`replaced_from = ${network} AND (asked_again_at IS NULL OR asked_again_at > replaced_at
    OR asked_again_at < now() - make_interval(secs => ${ASKED_AGAIN_EVERY_S}::int))`
  // Of two concurrent statements the second waits for the row lock and then sees the first one's update: both get the same successor.
  const sql = Prisma.sql`
    UPDATE refresh_tokens SET
      token_hash = CASE WHEN token_hash = ${shown} THEN ${digest(successorOf(token, salt))} ELSE token_hash END,
      salt = CASE WHEN token_hash = ${shown} THEN ${salt} ELSE salt END,
      replaced_at = CASE WHEN token_hash = ${shown} THEN now() ELSE replaced_at END,
      replaced_from = CASE WHEN token_hash = ${shown} THEN ${network} ELSE replaced_from END,
      asked_again_at = CASE WHEN token_hash = ${shown} OR ${isInGrace} THEN asked_again_at ELSE now() END,
      expires_at = CASE WHEN token_hash = ${shown} THEN ${idleEnd(options)} ELSE refresh_tokens.expires_at END,
      previous_hash = ${shown}
    FROM sessions JOIN users ON users.id = user_id
    WHERE ${isOfFamily(family)} AND used_at IS NULL AND sessions.id = session_id AND ${isAlive} AND refresh_tokens.expires_at > now()
      AND (token_hash = ${shown}
        OR previous_hash = ${shown} AND ${graceS}::int > 0 AND (${isInGrace} OR ${mayAskAgain}))
    RETURNING session_id AS "sessionId", user_id AS "userId", ${subjectColumns}, salt`
  const [row] = await rawQuery<TokenSubject & Record<'salt', Uint8Array>>(database, sql)
  if (row === undefined) return undefined
  const { salt: saltOfNext, ...subject } = row
  return { ...subject, refreshToken: successorOf(token, saltOfNext) }
}

/** Ends the session of a token that was used before, and returns it; undefined if there is none. */
export async function endByReuse(database: Database, token: string): Promise<Ended | undefined> {
  const [shown, family] = [digest(token), familyOf(token)]
  if (family === undefined) return undefined
  const sql = Prisma.sql`
    UPDATE sessions SET ${ended} FROM refresh_tokens
    WHERE sessions.id = session_id AND ${isAlive} AND (token_hash <> ${shown} OR used_at IS NOT NULL)
      AND ${isOfFamily(family)}
    RETURNING sessions.id AS "sessionId", user_id AS "userId"`
  const [session] = await rawQuery<Ended>(database, sql)
  return session
}

export function isOfFamily({ sessionId, familyHash }: Family): Prisma.Sql {
  return Prisma.sql`session_id = ${sessionId}::uuid AND family_hash = ${familyHash}`
}
