// Classifies failed queries by the errors of PostgreSQL and the driver. Prisma's codes for one
// event differ between models, raw SQL and transactions.
import { type Error as DriverCause, isDriverAdapterError } from '@prisma/driver-adapter-utils'
import { Prisma } from './generated/client.js'

/** Whether the same call may succeed later: the database is unreachable, or refuses temporarily. */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (unavailableStates.test(stateOf(error))) return true
  const cause = driverCause(error)
  if (cause) return unavailableKinds.has(cause.kind)
  return error instanceof Error && driverMessages.test(error.message)
}

/** Whether a change may have been made although it failed: the connection ended before the answer. */
export function mayHaveHappened(error: unknown): boolean {
  const kind = driverCause(error)?.kind
  if (kind === 'ConnectionClosed' || kind === 'SocketTimeout') return true
  if (lostStates.test(stateOf(error))) return true
  return error instanceof Error && lostMessages.test(error.message)
}

/**
 * Makes a change that finds out by itself whether it was made before. It is made again, once, if its
 * connection ended before the answer; not while the server is silent, which would take as long again.
 * Rejects with the first error.
 *
 * @param change gets whether it may have been made before
 */
export async function againIfLost<T>(change: (mayBeDone: boolean) => Promise<T>): Promise<T> {
  try {
    return await change(false)
  } catch (error) {
    if (!mayHaveHappened(error) || isSilence(error)) throw error
    return await change(true).catch((next: unknown) => {
      throw isDatabaseUnavailable(next) ? error : next
    })
  }
}

/** Whether a row was refused because another row has the same value in a unique column. */
export function isTaken(error: unknown): boolean {
  return driverCause(error)?.kind === 'UniqueConstraintViolation'
}

/** Why the database cannot be used, in words for its operator, without the URL. */
export function databaseProblem(error: unknown): string {
  const cause = driverCause(error)
  const code = stateOf(error)
  if (cause?.kind === 'DatabaseNotReachable' || code === 'ECONNREFUSED' || code === 'ENOTFOUND')
    return 'nothing answers there'
  if (cause?.kind === 'TlsConnectionError') return cause.reason
  if (lacksRight(error)) return NO_RIGHT
  if (/^42(P01|703|804)$/.test(code)) return "its tables are not Spillway's, or were not migrated"
  const message = cause?.originalMessage ?? (error instanceof Error ? error.message : String(error))
  // An error of PgBouncer.
  if (/^unsupported startup parameter/.test(message))
    return `a pooler answers there (${message}): add ?pgbouncer=true to the URL`
  if (message.startsWith(NO_PASSWORD)) return 'it asks for a password, and DATABASE_URL has none'
  // Prisma puts the call before the error.
  return message.trim().split('\n').at(-1) ?? message
}

/**
 * Whether PostgreSQL refused a value: the statement fails each time, and without that value it may
 * succeed. SQLSTATE classes 22 (data), 23 (constraint), and 54 (size).
 */
export function isValueRefused(error: unknown): boolean {
  return /^(22|23|54)/.test(stateOf(error))
}

/** Whether the user may not do what was asked (PostgreSQL's insufficient_privilege). */
export function lacksRight(error: unknown): boolean {
  return stateOf(error) === '42501'
}

/** PostgreSQL's SQLSTATE, or the code of an error of the system or of Prisma. Errors of the driver itself have none. */
function stateOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : ''
  return driverCause(error)?.originalCode ?? String(code)
}

/** The driver's error if the server requires SCRAM (RFC 7677). */
const NO_PASSWORD = 'SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be'
const NO_RIGHT =
  'its user lacks a right there: make it the owner of the database, or grant it CREATE ON SCHEMA public and all rights on the tables'

/** The driver's error, thrown directly or inside one of Prisma's. */
export function driverCause(error: unknown): DriverCause | undefined {
  const inner = error instanceof Prisma.PrismaClientKnownRequestError ? error.meta?.driverAdapterError : error
  // The library's own check throws for null.
  return inner instanceof Error && isDriverAdapterError(inner) ? inner.cause : undefined
}

/** Kinds of the driver's errors without a SQLSTATE. */
const unavailableKinds: ReadonlySet<DriverCause['kind']> = new Set([
  'DatabaseNotReachable',
  'ConnectionClosed',
  'SocketTimeout',
  'TlsConnectionError',
])

// SQLSTATE classes 08 (connection), 28 (authorization), 3D (no such database), 40 (rolled back for
// another transaction), 53 (resources), 57 (operator intervention, statement_timeout included); 25006,
// a server that became a read-only replica; and the time-outs of locks and transactions. P2028 is
// Prisma's: a transaction got no connection, or timed out. The rest are errors of the system that the
// adapter does not map: EAI_AGAIN, EHOSTUNREACH, EPIPE, several addresses.
const unavailableStates = /^(08|28|3D|40|53|57|25006|25P0[34]|55P03|P2028|E(?!RR_)[A-Z])/

// Texts of the driver's plain errors, which have no code.
const driverMessages =
  /^(SASL: |timeout exceeded when trying to connect|Connection terminated|Query read timeout|Client has encountered a connection error)/

// Connections that end while a statement runs: by the network, by PgBouncer (08P01), or by an end of
// the server (57P01, 57P02), which may follow a COMMIT.
const lostStates = /^(08(?!001|004)|57P0[12]|EPIPE|ECONNRESET|ETIMEDOUT)/
const isSilence = (error: unknown) => error instanceof Error && error.message.startsWith('Query read timeout')
const lostMessages = /^(Connection terminated(?! due to connection timeout)|Query read timeout)/
