/** Opens sessions in the database, and ends the oldest ones of a user who has too many. */
import { randomInt } from 'node:crypto'
import { type Database, gather, Prisma, rawQuery } from '@spillway/prisma'
import { newId } from '@spillway/queue/wire/id'
import { ASK_OLD_SYSTEM } from '@spillway/queue/wire/stored-hash'
import type { FastifyRequest } from 'fastify'
import { withoutPort } from '../plugins/client-network.js'
import { hasTombstone } from './deleted-addresses.js'
import {
  ended,
  idleEnd,
  isAlive,
  type Rotated,
  type RotationOptions,
  subjectColumns,
  type TokenSubject,
} from './refresh-rotation.js'
import { digest, familyOf, newRefreshToken, type RefreshTokenTags } from './refresh-tokens.js'

/** The most live sessions of a user, about: a change of the password has time to end them all. */
export const LIVE_MAX = 1_000
/**
 * One opening of so many, by chance, looks for sessions beyond the maximum: 500 in a row do not
 * with a probability of 10^-9. A look reads all rows of the user, also of sessions that ended
 * within the last day: five logins a second leave 430,000 of them.
 */
const OPENINGS_PER_LOOK = 25
/** What one look ends at most, far within the statement timeout of 5 s. */
const ENDED_MAX = 1_000

export interface OpeningOptions extends RotationOptions {
  sessionTtlS: number
  /** Whether only accounts whose address is confirmed open sessions. */
  needsConfirmedEmail: boolean
}

interface NewSession extends SessionClient {
  /** Of the job that verified the password. */
  id: string
  userId: string
  credentialVersion: number
}

type NotOpened = 'stale' | 'exists'
type Opened = Omit<TokenSubject, 'userId'>
type Opening = NewSession & { refreshToken: string }

/** Opens sessions. Those that wait together are opened by one statement. */
export class SessionOpener {
  readonly #database: Database
  readonly #tags: RefreshTokenTags
  readonly #options: OpeningOptions
  readonly #open: (opening: Opening) => Promise<Opened | NotOpened>

  constructor(database: Database, tags: RefreshTokenTags, options: OpeningOptions) {
    this.#database = database
    this.#tags = tags
    this.#options = options
    this.#open = gather<Opening, Opened | NotOpened>({
      one: (opening) => this.#openOne(opening),
      // A second opening of one session goes alone, and finds that the session exists.
      keyOf: ({ id }) => id,
      several: async (openings) => {
        // Passes over users who are locked, whose password may be about to change.
        const rows = await this.#openAll(openings, { credential: this.#verified(openings, Prisma.sql`SKIP LOCKED`) })
        const opened = new Map(rows.map(({ opened, ...session }) => [session.sessionId, opened ? session : undefined]))
        return openings.map(({ id }) => opened.get(id))
      },
    })
  }

  /**
   * Opens a session with the id of the job that verified the password. Returns `stale` when the
   * password was changed since, or the address lacks a required confirmation; `exists` when this
   * job has opened its session before. Of a user who has too many sessions, the oldest end.
   */
  async open(session: NewSession): Promise<Rotated | NotOpened> {
    const opening = { ...session, refreshToken: newRefreshToken(session.id) }
    const looks = randomInt(OPENINGS_PER_LOOK) === 0
    const opened = looks
      ? await this.#openOne(opening, { beside: oldestEnd(session.userId) })
      : await this.#open(opening)
    return this.#told(opening, opened)
  }

  /**
   * Opens the first session of an account that the old system vouches for, and makes the account in
   * the same statement: one that is unknown here, or one that came without a hash. `stale` where
   * that is no longer so. The address counts as confirmed.
   *
   * @param userId of the account that came without a hash; null for one that is unknown
   */
  async openVouchedFor(
    { userId, ...session }: Omit<NewSession, 'userId'> & { userId: string | null },
    { email, passwordHash }: { email: string; passwordHash: string },
  ): Promise<Rotated | NotOpened> {
    const id = userId ?? newId()
    const { credentialVersion } = session
    const made =
      userId === null
        ? Prisma.sql`
          INSERT INTO users (id, email, password_hash, email_confirmed_at, updated_at)
          SELECT ${id}::uuid, ${email}, ${passwordHash}, now(), now() WHERE NOT ${hasTombstone(Prisma.sql`${email}`)}
          ON CONFLICT DO NOTHING`
        : Prisma.sql`
          UPDATE users SET password_hash = ${passwordHash}, updated_at = now(),
            email_confirmed_at = coalesce(email_confirmed_at, now())
          WHERE id = ${id}::uuid AND password_hash = ${ASK_OLD_SYSTEM} AND credential_version = ${credentialVersion}
            AND disabled_at IS NULL`
    const credential = Prisma.sql`
      ${made} RETURNING id, email, email_confirmed_at, ${credentialVersion}::int AS credential_version`
    const opening = { ...session, userId: id, refreshToken: newRefreshToken(session.id) }
    return this.#told(opening, await this.#openOne(opening, { credential }))
  }

  #told({ userId, refreshToken }: Opening, opened: Opened | NotOpened): Rotated | NotOpened {
    return typeof opened === 'string' ? opened : { ...opened, userId, refreshToken: this.#tags.tag(refreshToken) }
  }

  async #openOne(
    opening: Opening,
    { credential = this.#verified([opening]), beside }: { credential?: Prisma.Sql; beside?: Prisma.Sql } = {},
  ): Promise<Opened | NotOpened> {
    const [row] = await this.#openAll([opening], { credential, beside })
    if (row === undefined) return 'stale'
    const { opened, ...session } = row
    return opened ? session : 'exists'
  }

  /** FOR SHARE waits for a change of the password, which could not see the session to end it. */
  #verified(openings: readonly Opening[], orElse = Prisma.empty): Prisma.Sql {
    return Prisma.sql`
      SELECT id, email, email_confirmed_at, credential_version FROM users
      WHERE id = ANY (${openings.map(({ userId }) => userId)}::uuid[]) AND disabled_at IS NULL
        AND (email_confirmed_at IS NOT NULL OR NOT ${this.#options.needsConfirmedEmail}::boolean) FOR SHARE ${orElse}`
  }

  /**
   * One statement checks the credentials and inserts the sessions. A row for each that fits.
   *
   * @param parts.credential rows of users who may open sessions
   * @param parts.beside what is done in the same statement, where a session is opened
   */
  async #openAll(
    openings: readonly Opening[],
    { credential, beside = Prisma.empty }: { credential: Prisma.Sql; beside?: Prisma.Sql | undefined },
  ): Promise<(Opened & { opened: boolean })[]> {
    const { sessionTtlS } = this.#options
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
        ${credential}
      ), fitting AS (
        SELECT asked.*, email, email_confirmed_at FROM asked
        JOIN credential ON credential.id = user_id AND credential_version = version
      ), session AS (
        INSERT INTO sessions (id, user_id, expires_at, idle_ends_at, device, address, family_hash, token_hash)
        SELECT session_id, user_id, now() + make_interval(secs => ${sessionTtlS}::int), ${idleEnd(this.#options)},
          device, address, family_hash, token_hash FROM fitting
        ON CONFLICT (id) DO NOTHING RETURNING id, created_at
      )${beside}
      SELECT session_id AS "sessionId", sessions.id IS NOT NULL AS opened, ${subjectColumns}
      FROM fitting LEFT JOIN session AS sessions ON sessions.id = session_id`
    return await rawQuery<Opened & { opened: boolean }>(this.#database, sql)
  }
}

/**
 * Ends the sessions beyond the maximum, if one was opened. That one is not yet seen here, hence one
 * less. Locked rows are skipped: another login is ending them, and two that wait for each other
 * fail.
 */
function oldestEnd(userId: string): Prisma.Sql {
  return Prisma.sql`, excess AS (
      SELECT id FROM sessions WHERE EXISTS (SELECT FROM session) AND user_id = ${userId}::uuid AND ${isAlive}
      ORDER BY created_at DESC OFFSET ${LIVE_MAX - 1} LIMIT ${ENDED_MAX}
    ), locked AS (
      SELECT id FROM sessions WHERE id IN (SELECT id FROM excess) AND revoked_at IS NULL FOR NO KEY UPDATE SKIP LOCKED
    ), ended AS (
      UPDATE sessions SET ${ended} FROM locked WHERE sessions.id = locked.id
    )`
}

/** Longer ones are cut: the beginning tells devices apart. */
const DEVICE_MAX_LENGTH = 256
const IP_MAX_LENGTH = 64

export interface SessionClient {
  /** Its User-Agent, printable ASCII alone; null without one. */
  device: string | null
  /** As the connection or the proxy reports it. */
  ip: string
}

export function sessionClientOf({ headers, ip }: FastifyRequest): SessionClient {
  const device = (headers['user-agent'] ?? '')
    .replace(/[^ -~]/g, '')
    .trim()
    .slice(0, DEVICE_MAX_LENGTH)
  return { device: device === '' ? null : device, ip: withoutPort(ip).slice(0, IP_MAX_LENGTH) }
}
