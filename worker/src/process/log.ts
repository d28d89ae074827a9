/**
 * The log of every process: JSON lines on stdout, one event a line. Errors are cut down to what is known to be harmless,
 * because libraries hang the command or query that failed, with its arguments, on the error they throw.
 */
import { type Logger, pino } from 'pino'
import { gatheredStdout } from './stdout.js'

export type { Logger }

interface LoggedError {
  type: string
  message: string
  code?: string | number
  stack?: string
  cause?: LoggedError
}

function describeError(error: unknown): LoggedError {
  if (!(error instanceof Error)) return { type: typeof error, message: 'a value that is no error was thrown' }
  const described: LoggedError = { type: error.name, message: error.message }
  if ('code' in error && (typeof error.code === 'string' || typeof error.code === 'number')) described.code = error.code
  if (error.stack !== undefined) described.stack = error.stack
  if (error.cause !== undefined) described.cause = describeError(error.cause)
  return described
}

/** A logger that names its process in each line; `level` is one of pino's (`silent` turns it off). */
export function createLogger(options: { service: string; level: string }): Logger {
  return pino(
    {
      level: options.level,
      base: { service: options.service, pid: process.pid },
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: describeError },
    },
    gatheredStdout(),
  )
}
