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
import { digest, familyOf, newRefreshToken } from './refresh-tokens.js'

/**
 * A user has at most about so many live sessions, so a change of the password always has time to end them, however many an attacker opened.
 */
export const LIVE_MAX = 1_000
/**
 * One opening of so many, by chance, looks for sessions beyond the maximum: 500 in a row do not with a probability of 10^-9. A look reads
 * all rows of the user, also of sessions that ended within the last day: five logins a second leave 430,000 of them.
 */
const OPENINGS_PER_LOOK = 25
/** What one look ends at most, far within the statement timeout of 5 s. */
const ENDED_MAX = 1_000

export interface OpeningOptions extends RotationOptions {
  sessionTtlS: number
  /** Whether only accounts whose address is confirmed open sessions. */
  needsConfirmedEmail: boolean
}

export interface NewSession extends SessionClient {
  /** Of the job that verified the password. */
  id: string
  userId: string
  credentialVersion: number
}

/** What the old system vouched for: the address, and the password that it was asked about. */
export interface VouchedFor {
  email: string
  passwordHash: string
}

/** Why a session was not opened: the password was changed meanwhile, or this job has opened its session before. */
type NotOpened = 'stale' | 'exists'
type Opened = Omit<TokenSubject, 'userId'>
type Opening = NewSession & { refreshToken: string }

/** Opens a session, or tells why not: `open` of the interface Sessions. Sessions that wait together are opened by one statement. */
export function createOpenSession(
  database: Database,
  options: OpeningOptions,
): (session: NewSession) => Promise<Rotated | NotOpened> {
  const open = gather<Opening, Opened | NotOpened>({
    one: (opening) => openOne(database, opening, options),
    // A second opening of one session goes alone, and finds that the session exists.
    keyOf: ({ id }) => id,
    several: (openings) => openSeveral(database, openings, options),
  })
  return async (session) => {
    const opening = { ...session, refreshToken: newRefreshToken(session.id) }
    const looks = randomInt(OPENINGS_PER_LOOK) === 0
    const opened = looks
      ? await openOne(database, opening, options, { beside: oldestEnd(session.userId) })
      : await open(opening)
    if (typeof opened === 'string') return opened
    return { ...opened, userId: session.userId, refreshToken: opening.refreshToken }
  }
}

/**
 * Opens the first session of an account that the old system vouches for, and makes the account in the same statement: one that is unknown
 * here, or one that came without a hash. `stale` where that is no longer so. The address counts as confirmed.
 *
 * @param userId of the account that came without a hash; null for one that is unknown
 */
export async function openVouchedFor(
  database: Database,
  { userId, ...session }: Omit<NewSession, 'userId'> & { userId: string | null },
  { email, passwordHash }: VouchedFor,
  options: OpeningOptions,
): Promise<Rotated | NotOpened> {
  const id = userId ?? newId()
  const made =
    userId === null
      ? Prisma.sql`
        INSERT INTO users (id, email, password_hash, email_confirmed_at, updated_at)
        SELECT ${id}::uuid, ${email}, ${passwordHash}, now(), now() WHERE NOT ${hasTombstone(Prisma.sql`${email}`)}
        ON CONFLICT DO NOTHING RETURNING id, email, email_confirmed_at`
      : Prisma.sql`
        UPDATE users SET password_hash = ${passwordHash}, email_confirmed_at = coalesce(email_confirmed_at, now()), updated_at = now()
        WHERE id = ${id}::uuid AND password_hash = ${ASK_OLD_SYSTEM} AND credential_version = ${session.credentialVersion}
          AND disabled_at IS NULL
        RETURNING id, email, email_confirmed_at`
  const opening = { ...session, userId: id, refreshToken: newRefreshToken(session.id) }
  const opened = await openOne(database, opening, options, { credential: made })
  return typeof opened === 'string' ? opened : { ...opened, userId: id, refreshToken: opening.refreshToken }
}

/**
 * @param parts.credential the row of the user who may open the session [the one whose password was verified]
 * @param parts.beside what is done in the same statement, where a session is opened
 */
async function openOne(
  database: Database,
  { id, userId, credentialVersion, device, address, refreshToken }: Opening,
  options: OpeningOptions,
  parts: { credential?: Prisma.Sql; beside?: Prisma.Sql } = {},
): Promise<Opened | NotOpened> {
  // One statement checks the credential and inserts the session, or does nothing. FOR SHARE waits for a
  // concurrent change of the password, which could not see this session to end it.
  const { beside = Prisma.empty } = parts
  const verified = Prisma.sql`
    SELECT id, email, email_confirmed_at FROM users WHERE id = ${userId}::uuid AND credential_version = ${credentialVersion}
      AND ${mayOpen(options)} FOR SHARE`
  const sql = Prisma.sql`
    WITH credential AS (
      ${parts.credential ?? verified}
    ), session AS (
      INSERT INTO sessions (id, user_id, expires_at, idle_ends_at, device, address, family_hash, token_hash)
      SELECT ${id}::uuid, credential.id, ${sessionEnd(options)}, ${idleEnd(options)}, ${device}::text, ${address}::text,
        ${familyOf(refreshToken)?.familyHash}, ${digest(refreshToken)} FROM credential
      ON CONFLICT (id) DO NOTHING RETURNING id, created_at
    )${beside}
    SELECT sessions.id IS NOT NULL AS opened, ${subjectColumns} FROM credential LEFT JOIN session AS sessions ON true`
  const [row] = await rawQuery<Omit<Opened, 'sessionId'> & { opened: boolean }>(database, sql)
  if (row === undefined) return 'stale'
  const { opened, ...subject } = row
  return opened ? { ...subject, sessionId: id } : 'exists'
}

/**
 * The same for several sessions. Passes over users who are locked, whose password may be about to change, and says nothing of sessions
 * that were not opened.
 */
async function openSeveral(
  database: Database,
  openings: readonly Opening[],
  options: OpeningOptions,
): Promise<(Opened | undefined)[]> {
  const sql = Prisma.sql`
    WITH asked AS (
      SELECT * FROM unnest(
        ${openings.map(({ id }) => id)}::uuid[], ${openings.map(({ userId }) => userId)}::uuid[],
        ${openings.map(({ credentialVersion }) => credentialVersion)}::int[],
        ${openings.map(({ device }) => device)}::text[], ${openings.map(({ address }) => address)}::text[],
        ${openings.map(({ refreshToken }) => familyOf(refreshToken)?.familyHash)}::bytea[],
        ${openings.map(({ refreshToken }) => digest(refreshToken))}::bytea[]
      ) AS asked (id, user_id, credential_version, device, address, family_hash, token_hash)
    ), credential AS (
      SELECT id, email, email_confirmed_at, credential_version FROM users
      WHERE id = ANY (${openings.map(({ userId }) => userId)}::uuid[]) AND ${mayOpen(options)} FOR SHARE SKIP LOCKED
    ), session AS (
      INSERT INTO sessions (id, user_id, expires_at, idle_ends_at, device, address, family_hash, token_hash)
      SELECT asked.id, credential.id, ${sessionEnd(options)}, ${idleEnd(options)}, device, address, family_hash, token_hash
      FROM asked JOIN credential ON credential.id = user_id AND credential.credential_version = asked.credential_version
      ON CONFLICT (id) DO NOTHING RETURNING id, user_id, created_at
    )
    SELECT sessions.id AS "sessionId", ${subjectColumns} FROM session AS sessions JOIN credential ON credential.id = user_id`
  const rows = await rawQuery<Opened>(database, sql)
  const opened = new Map(rows.map((row) => [row.sessionId, row]))
  return openings.map(({ id }) => opened.get(id))
}

/** Whether the user of a row may open sessions. */
function mayOpen({ needsConfirmedEmail }: OpeningOptions): Prisma.Sql {
  return Prisma.sql`(email_confirmed_at IS NOT NULL OR NOT ${needsConfirmedEmail}::boolean) AND disabled_at IS NULL`
}

function sessionEnd({ sessionTtlS }: OpeningOptions): Prisma.Sql {
  return Prisma.sql`now() + make_interval(secs => ${sessionTtlS}::int)`
}

/**
 * Ends the sessions beyond the maximum, if one was opened. That one is not yet seen here, hence one less. Locked rows are skipped: another
 * login is ending them, and two that wait for each other would fail.
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
const ADDRESS_MAX_LENGTH = 64

export interface SessionClient {
  /** Its User-Agent, printable ASCII alone; null without one. */
  device: string | null
  /** As the connection or the proxy reports it. */
  address: string
}

export function sessionClientOf({ headers, ip }: FastifyRequest): SessionClient {
  const device = (headers['user-agent'] ?? '')
    .replace(/[^ -~]/g, '')
    .trim()
    .slice(0, DEVICE_MAX_LENGTH)
  return { device: device === '' ? null : device, address: withoutPort(ip).slice(0, ADDRESS_MAX_LENGTH) }
}
