/**
 * The log of every process: JSON lines on stdout, one event a line. Errors are cut down to what is known to be harmless,
 * because libraries hang the command or query that failed, with its arguments, on the error they throw.
 */
import { type DestinationStream, type Logger, pino } from 'pino'

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

/**
 * Lines are written together, at the latest after this long: one by one they cost a worker a quarter of its event loop. An exit
 * writes what is left; only a process that is killed takes its last lines along.
 */
const FLUSH_MS = 100
const FLUSH_BYTES = 8 * 1_024

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
    gatheringStdout(),
  )
}

/** Pino's own periodic flush writes nothing, by way of a thread, where there is nothing: half of all awakenings at rest. */
function gatheringStdout(): DestinationStream & Pick<Logger, 'flush'> {
  const stdout = pino.destination({ sync: false, minLength: FLUSH_BYTES })
  let unwrittenBytes = 0
  let isFlushDue = false
  function flushSoon(): void {
    if (isFlushDue) return
    isFlushDue = true
    setTimeout(() => {
      isFlushDue = false
      stdout.flush()
    }, FLUSH_MS).unref()
  }
  stdout.on('write', (bytes) => {
    unwrittenBytes -= bytes
  })
  // A flush does nothing while a write is underway, and what came meanwhile may be too little to be written by itself.
  stdout.on('drain', () => {
    if (unwrittenBytes > 0) flushSoon()
  })
  return {
    write(line) {
      unwrittenBytes += Buffer.byteLength(line)
      stdout.write(line)
      flushSoon()
    },
    flush: (done) => stdout.flush(done),
  }
}
