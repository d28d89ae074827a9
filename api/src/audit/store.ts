/** The table of audit events: inserts batches, reads pages, and deletes the oldest events. */

import { type Database, Prisma, rawQuery } from '@spillway/prisma'
import { firstIdAt } from '@spillway/queue/wire/id'
import { type ErrorCode, errorCodes, type RefusalReason, refusalReasons } from '../http/problems.js'

/** What every event has. */
type EventRow = {
  id: string
  /** In ISO 8601. */
  at: string
  event: AuditEventName
  outcome: AuditOutcome
  /** How many events it stands for. */
  count: number
}

export type StoredEvent = EventRow & {
  userId: string | null
  sessionId: string | null
  /** The network of the client: an IPv4 address, or the /64 of an IPv6 address. */
  address: string | null
  /** For a login: whether the device is known, and its consecutive failures with this one. */
  isKnownDevice: boolean | null
  failures: number | null
  /** The id of the request. For a redemption: of the request that got the ticket. */
  requestId: string | null
  /** The operator who did it in place of the user, and why. On the board, also the target. */
  operator: string | null
  reason: string | null
}

/** An event to insert. A field that is absent is null in its row. */
export type AddedEvent = EventRow &
  Partial<StoredEvent> & {
    /** Names the account in place of `userId`. It is read at the insert, and not stored. */
    email?: string | undefined
  }

/** The most events that one statement deletes, far within the statement timeout of 5 s. */
const DELETED = 2_000
const DAY_MS = 24 * 3_600_000

/**
 * Adds all events, or none. An existing event does not change, because a batch is written again
 * when its answer was lost. The commit waits for neither disk nor standby: a crash of PostgreSQL
 * loses the last second.
 */
export async function insertEvents(database: Database, events: readonly AddedEvent[]): Promise<void> {
  const sql = Prisma.sql`
    WITH asynchronous AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
    INSERT INTO audit_events (id, at, event, outcome, count, user_id, session_id, address, request_id, known_device, failures,
      operator, reason)
    SELECT added.id, at, event, outcome, count,
      COALESCE("userId", users.id, (SELECT user_id FROM sessions WHERE sessions.id = "sessionId")), "sessionId", address, "requestId",
      "isKnownDevice", failures, operator, reason
    FROM json_to_recordset(${JSON.stringify(events)}::json) AS added (
      id uuid, at timestamptz, event text, outcome text, count int, "userId" uuid, "sessionId" uuid, address text,
      "requestId" text, "isKnownDevice" boolean, failures int, operator text, reason text, email text
    ) LEFT JOIN users USING (email), asynchronous
    ON CONFLICT (id) DO NOTHING`
  await rawQuery(database, sql)
}

const conditions = [
  ['requestId', (id: string) => Prisma.sql`request_id = ${id}`],
  ['userId', (id: string) => Prisma.sql`user_id = ${id}::uuid`],
  ['address', (network: string) => Prisma.sql`address = ${network}`],
  ['event', (name: string) => Prisma.sql`event = ${name}`],
  ['outcome', (name: string) => Prisma.sql`outcome = ${name}`],
  ['operator', (name: string) => Prisma.sql`operator = ${name}`],
  // By the id, because it has an index.
  ['from', (time: string) => Prisma.sql`id >= ${firstIdAt(Date.parse(time))}::uuid`],
  ['until', (time: string) => Prisma.sql`id < ${firstIdAt(Date.parse(time))}::uuid`],
  // Only events before the one with this id.
  ['before', (id: string) => Prisma.sql`id < ${id}::uuid`],
] as const

/** The conditions that events must match. An absent condition matches every event. */
export type EventFilter = { [Name in (typeof conditions)[number][0]]?: string | undefined }

/** Returns events from the latest to the earliest. */
export async function readEvents(
  database: Database,
  { limit, ...filter }: EventFilter & { limit: number },
): Promise<StoredEvent[]> {
  const given = conditions.flatMap(([name, conditionOn]) => {
    const value = filter[name]
    return value === undefined ? [] : [conditionOn(value)]
  })
  const sql = Prisma.sql`
    SELECT id, at, event, outcome, count, user_id AS "userId", session_id AS "sessionId", address,
      request_id AS "requestId", known_device AS "isKnownDevice", failures, operator, reason
    FROM audit_events WHERE ${Prisma.join([Prisma.sql`TRUE`, ...given], ' AND ')} ORDER BY id DESC LIMIT ${limit}`
  const rows = await rawQuery<StoredEvent>(database, sql)
  return rows.map((row) => ({ ...row, at: new Date(row.at).toISOString() }))
}

/** Deletes the oldest events beyond the retention, up to a number. Returns their number. */
export function deleteOldEvents(database: Database, retentionDays: number): Promise<number> {
  // By the id, which has an index, and by the time that the trigger checks: clocks may differ.
  const oldest = firstIdAt(Date.now() - retentionDays * DAY_MS)
  return database.$executeRaw`
    DELETE FROM audit_events WHERE id IN (
      SELECT id FROM audit_events
      WHERE id < ${oldest}::uuid AND at < now() - make_interval(days => ${retentionDays}::int) ORDER BY id LIMIT ${DELETED}
    )`
}

/** The event of a flow is its kind. */
export const auditEventNames = [
  'register',
  'login',
  'change_password',
  'verify_password',
  'request_password_reset',
  'reset_password',
  'request_email_confirmation',
  'confirm_email',
  'change_email',
  'delete_account',
  'export_account',
  'read_account',
  'search_audit',
  'export_audit',
  'disable_account',
  'enable_account',
  'forget_failures',
  'logout',
  'end_session',
  'end_other_sessions',
  'end_all_sessions',
  'block_network',
  'unblock_network',
  'refresh_token_reuse',
  'rate_limit',
  'pause_queue',
  'resume_queue',
  'retry_jobs',
  'promote_jobs',
] as const
export type AuditEventName = (typeof auditEventNames)[number]

/**
 * `ok`; `unchanged` if an operator's change had nothing to do; otherwise why it was refused: the
 * reason of the metrics, or the code of the problem.
 */
type AuditOutcome = 'ok' | 'unchanged' | RefusalReason | ErrorCode
export const auditOutcomes: readonly string[] = ['ok', 'unchanged', ...refusalReasons, ...errorCodes]

/** An event as it happens. Only the id of the account is stored: not its e-mail address, and not what was typed. */
export type AuditEvent = Partial<StoredEvent> & {
  event: AuditEventName
  outcome: AuditOutcome
  /** Names the account in place of `userId`; so does `sessionId`. */
  email?: string | undefined
  /** The client's address, from the connection or the proxy. Only its network is stored. */
  ip: string
  requestId: string
}
