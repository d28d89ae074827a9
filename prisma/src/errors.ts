// What a failed query means to the caller, from what PostgreSQL and the driver said, because
// Prisma reports the same event under different codes for models, raw SQL and transactions.
import { type Error as DriverCause, isDriverAdapterError } from '@prisma/driver-adapter-utils'
import { Prisma } from './generated/client.js'

/**
 * Whether the error means that the database could not be asked, or not in time, so that the same call may succeed later:
 * no server, no connection free, refused credentials, a timeout, a server that is stopping or out of resources.
 */
export function isDatabaseUnavailable(error: unknown): boolean {
  const cause = driverCause(error)
  if (cause) return unavailableKinds.has(cause.kind) || unavailableStates.test(cause.originalCode ?? '')
  // P2028: a transaction got no connection, or outlived its time.
  if (error instanceof Prisma.PrismaClientKnownRequestError) return error.code === 'P2028'
  return error instanceof Error && (isSystemError(error) || driverMessages.test(error.message))
}

/** What the driver said, whether it reached us directly or inside an error of Prisma's. */
export function driverCause(error: unknown): DriverCause | undefined {
  const inner = error instanceof Prisma.PrismaClientKnownRequestError ? error.meta?.driverAdapterError : error
  return isDriverError(inner) ? inner.cause : undefined
}

// The library's own check reads properties of whatever it is given, null too.
const isDriverError = (error: unknown) => error instanceof Error && isDriverAdapterError(error)

const unavailableKinds: ReadonlySet<DriverCause['kind']> = new Set<DriverCause['kind']>([
  'DatabaseNotReachable',
  'DatabaseDoesNotExist',
  'DatabaseAccessDenied',
  'AuthenticationFailed',
  'ConnectionClosed',
  'SocketTimeout',
  'TlsConnectionError',
  'TooManyConnections',
])

// SQLSTATE classes: 08 connection, 53 resources, 57 stopped by an operator or by statement_timeout; and 25006, a server
// that became a read-only replica.
const unavailableStates = /^(08|53|57|25006)/

// The driver reports these as plain errors, with nothing but the text to know them by.
const driverMessages =
  /^(timeout exceeded when trying to connect|Connection terminated|Query read timeout|Client has encountered a connection error)/

// The adapter passes on system errors that it does not know (EAI_AGAIN, EHOSTUNREACH, EPIPE, several addresses refused).
const isSystemError = (error: Error) => 'code' in error && /^E(?!RR_)[A-Z]+/.test(String(error.code))
