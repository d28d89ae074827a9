// Classifies failed queries by the errors of PostgreSQL and the driver: Prisma's codes for one event
// differ between models, raw SQL and transactions.
import { type Error as DriverCause, isDriverAdapterError } from '@prisma/driver-adapter-utils'
import { Prisma } from './generated/client.js'

/** Whether the same call may succeed later: the database cannot be reached, or refuses for now. */
export function isDatabaseUnavailable(error: unknown): boolean {
  const cause = driverCause(error)
  if (cause) return unavailableKinds.has(cause.kind) || unavailableStates.test(cause.originalCode ?? '')
  // P2028: a transaction got no connection, or timed out.
  if (error instanceof Prisma.PrismaClientKnownRequestError) return error.code === 'P2028'
  return error instanceof Error && (isSystemError(error) || driverMessages.test(error.message))
}

/** Whether a row was refused because another has the same value where each must have its own. */
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
  if (/^42(P01|703|804)$/.test(String(code))) return "its tables are not Spillway's, or were not migrated"
  const message = cause?.originalMessage ?? (error instanceof Error ? error.message : String(error))
  // By PgBouncer.
  if (/^unsupported startup parameter/.test(message))
    return `a pooler answers there (${message}): add ?pgbouncer=true to the URL`
  if (message.startsWith(NO_PASSWORD)) return 'it asks for a password, and DATABASE_URL has none'
  // Prisma puts the call before the error.
  return message.trim().split('\n').at(-1) ?? message
}

/** Whether the user may not do what was asked (PostgreSQL's insufficient_privilege). */
export function lacksRight(error: unknown): boolean {
  return stateOf(error) === '42501'
}

/** PostgreSQL's SQLSTATE, which the driver's own errors lack. */
function stateOf(error: unknown): unknown {
  return driverCause(error)?.originalCode ?? codeOf(error)
}

/** Of an error of the system or of the pool, which the driver passes on. */
function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}

/** The driver's error where the server wants SCRAM (RFC 7677). */
const NO_PASSWORD = 'SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be'
const NO_RIGHT =
  'its user lacks a right there: make it the owner of the database, or grant it CREATE ON SCHEMA public and all rights on the tables'

/** The driver's error, thrown directly or inside one of Prisma's. */
export function driverCause(error: unknown): DriverCause | undefined {
  const inner = error instanceof Prisma.PrismaClientKnownRequestError ? error.meta?.driverAdapterError : error
  // The library's own check throws for null.
  return inner instanceof Error && isDriverAdapterError(inner) ? inner.cause : undefined
}

const unavailableKinds: ReadonlySet<DriverCause['kind']> = new Set<DriverCause['kind']>([
  ...(['DatabaseNotReachable', 'DatabaseDoesNotExist', 'DatabaseAccessDenied', 'AuthenticationFailed'] as const),
  ...(['ConnectionClosed', 'SocketTimeout', 'TlsConnectionError', 'TooManyConnections'] as const),
])

// SQLSTATE classes 08 (connection), 53 (resources), 57 (operator intervention, statement_timeout
// included); and 25006, a server that became a read-only replica.
const unavailableStates = /^(08|53|57|25006)/

// Of the driver's plain errors, which have only a text.
const driverMessages =
  /^(SASL: |timeout exceeded when trying to connect|Connection terminated|Query read timeout|Client has encountered a connection error)/

// System errors that the adapter does not map: EAI_AGAIN, EHOSTUNREACH, EPIPE, several addresses.
const isSystemError = (error: Error) => /^E(?!RR_)[A-Z]+/.test(String(codeOf(error)))
