/** Opens sessions in the database, and ends the oldest ones of a user who has too many. */
import { randomInt } from 'node:crypto'
import { type Database, gather, Prisma, rawQuery } from '@spillway/prisma'
import type { FastifyRequest } from 'fastify'
import { withoutPort } from '../http/client-network.js'
import { digest, familyOf, newRefreshToken, type RefreshTokenTags } from './refresh-tokens.js'
import {
  ended,
  idleEnd,
  isAlive,
  type Rotated,
  type RotationOptions,
  subjectColumns,
  type TokenSubject,
} from './sessions.js'

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

export interface OpeningOptions extends RotationOptions {
  sessionTtlS: number
  /** Whether an account needs a confirmed address to open sessions. */
  needsConfirmedEmail: boolean
}

interface NewSession extends SessionClient {
  /** The id of the job that verified the password. */
  id: string
  userId: string
  credentialVersion: number
}

type Opening = NewSession & { refreshToken: string }

/** Opens sessions. Sessions that wait together are opened by one statement. */
export class SessionOpener {
  readonly #database: Database
  readonly #tags: RefreshTokenTags
  readonly #options: OpeningOptions
  readonly #open: (opening: Opening) => Promise<TokenSubject | 'stale'>

  constructor(database: Database, tags: RefreshTokenTags, options: OpeningOptions) {
    this.#database = database
    this.#tags = tags
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
        SELECT session_id, user_id, now() + make_interval(secs => ${sessionTtlS}::int), ${idleEnd(this.#options)},
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
