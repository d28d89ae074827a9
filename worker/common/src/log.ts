/**
 * The logger of every process: JSON lines on stdout. Errors are reduced to harmless properties, because libraries attach the failed
 * command or query with its arguments to the errors they throw.
 */
import { type Logger, pino } from 'pino'
import { bufferedStdout } from './stdout.js'

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

/** Creates a logger whose lines name the service. `level` is one of pino's; `silent` turns logging off. */
export function createLogger(options: { service: string; level: string }): Logger {
  return pino(
    {
      level: options.level,
      base: { service: options.service, pid: process.pid },
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: describeError },
    },
    bufferedStdout(),
  )
}
