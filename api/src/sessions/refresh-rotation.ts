/** Rotation of refresh tokens: one statement, safe for concurrent gateways. */
import { type Database, gather, Prisma, rawQuery } from '@spillway/prisma'
import { type Digest, digest, type Family, familyOf, newSalt, successorOf } from './refresh-tokens.js'

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
 * How long after a lost answer another one may be asked for after its grace, in seconds. Two
 * parties in one network who hold a session would each ask after every refresh of the other.
 */
const ASKED_AGAIN_EVERY_S = 6 * 3_600

export type Ended = Pick<TokenSubject, 'sessionId' | 'userId'>

export interface RotationOptions {
  /** How long the token that was replaced last returns the same successor again, in seconds. */
  refreshGraceS: number
  /** After this long without a refresh a session ends, in seconds. */
  sessionIdleS: number
}

export const isAlive = Prisma.sql`sessions.revoked_at IS NULL AND sessions.expires_at > now() AND sessions.idle_ends_at > now()`

/** The columns of {@link TokenSubject} beside the ids, from `sessions` and `users`. */
export const subjectColumns = Prisma.sql`
  floor(extract(epoch FROM sessions.created_at))::float8 AS "authTimeS", email, email_confirmed_at IS NOT NULL AS "isConfirmed"`

/** Ends a session, and its expiry: old rows would slow all queries of their user. */
export const ended = Prisma.sql`revoked_at = now(), expires_at = now()`

/** The end of a session whose token is made now, unless it is refreshed. */
export function idleEnd({ sessionIdleS }: RotationOptions): Prisma.Sql {
  return Prisma.sql`now() + make_interval(secs => ${sessionIdleS}::int)`
}

/** A token that a client shows, and the network of the client. */
export interface Shown {
  token: string
  network: string
}

interface Rotation extends Family {
  shown: Digest
  /** Of the successor, and the salt that it is derived by. */
  next: Digest
  salt: Digest
  network: string
}
type RotatedRow = TokenSubject & Record<'salt', Uint8Array>

/** Replaces refresh tokens. Those that wait together are replaced by one statement. */
export class TokenRotation {
  readonly #rotate: (rotation: Rotation) => Promise<RotatedRow | undefined>

  constructor(database: Database, options: RotationOptions) {
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

  /**
   * Replaces the living token of a session. The token that was replaced last returns the same
   * successor again within the grace period. After it, only an unused successor is returned, to the
   * network from which the token was replaced, one replacement in {@link ASKED_AGAIN_EVERY_S}.
   * Undefined for any other token, and for sessions that have ended.
   */
  async rotate({ token, network }: Shown): Promise<Rotated | undefined> {
    const family = familyOf(token)
    if (family === undefined) return undefined
    const salt = newSalt()
    const next = digest(successorOf(token, salt))
    const row = await this.#rotate({ ...family, shown: digest(token), next, salt, network })
    if (row === undefined) return undefined
    const { salt: saltOfNext, ...subject } = row
    return { ...subject, refreshToken: successorOf(token, saltOfNext) }
  }
}

/** Of two for one session the second waits for the row lock: both get the same successor. */
function rotateAll(
  database: Database,
  rotations: readonly Rotation[],
  options: RotationOptions,
  condition = Prisma.empty,
): Promise<RotatedRow[]> {
  const { refreshGraceS: graceS } = options
  const isLiving = Prisma.sql`token_hash = shown`
  const isInGrace = Prisma.sql`replaced_at > now() - make_interval(secs => ${graceS}::int)`
  // Of the same replacement as often as its answer is lost.
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

/** Passes over sessions that are locked: each of them would hold up all others. */
function notLocked(rotations: readonly Rotation[]): Prisma.Sql {
  return Prisma.sql`AND sessions.id = ANY (ARRAY(
    SELECT id FROM sessions WHERE id = ANY (${rotations.map(({ sessionId }) => sessionId)}::uuid[]) FOR NO KEY UPDATE SKIP LOCKED))`
}

/** Ends the session of a token that was used before; undefined without a session. */
export async function endByReuse(database: Database, token: string): Promise<Ended | undefined> {
  return await endFamily(database, token, Prisma.sql`AND token_hash <> ${digest(token)}`)
}

/** Ends the session of a token, living or dead, and returns it; undefined without a session. */
export async function endFamily(
  database: Database,
  token: string,
  condition = Prisma.empty,
): Promise<Ended | undefined> {
  const family = familyOf(token)
  if (family === undefined) return undefined
  const sql = Prisma.sql`
    UPDATE sessions SET ${ended}
    WHERE id = ${family.sessionId}::uuid AND family_hash = ${family.familyHash} AND ${isAlive} ${condition}
    RETURNING id AS "sessionId", user_id AS "userId"`
  const [session] = await rawQuery<Ended>(database, sql)
  return session
}
