/**
 * The logger of every process: JSON lines on stdout. Errors are reduced to harmless properties,
 * because libraries attach the failed command or query with its arguments to the errors they throw.
 */
import { write, writeSync } from 'node:fs'
import { type Logger, pino } from 'pino'

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

/** Creates a logger of a service. `level` is one of pino's; `silent` turns logging off. */
export function createLogger(options: { service: string; level: string }): Logger {
  stdout ??= new BufferedStdout()
  return pino(
    {
      level: options.level,
      base: { service: options.service, pid: process.pid },
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: describeError },
    },
    stdout,
  )
}

const STDOUT = 1
/** Lines are written after this many milliseconds or characters, whichever comes first. */
const FLUSH_INTERVAL_MS = 100
const FLUSH_LENGTH = 8 * 1_024
/** The size of the buffer in characters: some fifty thousand lines. */
const BUFFER_LENGTH = 8 * 1_024 * 1_024
/** Pause before a write to a full pipe is retried, and the limit of retries at the exit. */
const RETRY_MS = 20
const EXIT_WRITE_MS = 1_000

const NOTHING = Buffer.alloc(0)

/**
 * Writes lines of the log in batches: one write for each line takes a quarter of a worker's event
 * loop. Lines that cannot be written (closed pipe, full disk) are dropped: nothing waits for them.
 * Lines beyond the buffer are counted in one line. SonicBoom, pino's default, repeats failed writes
 * at the exit for ever, and throws the error of a full disk.
 */
class BufferedStdout {
  #buffered = ''
  #dropped = 0
  #unwritten: Buffer = NOTHING
  #isWriting = false
  #isFlushDue = false
  #waiting: (() => void)[] = []

  constructor() {
    process.once('exit', () => {
      // Bytes of a pending write belong to a thread of the pool.
      writeAtExit(this.#isWriting ? this.#takeBuffered() : Buffer.concat([this.#unwritten, this.#takeBuffered()]))
    })
  }

  write(line: string): void {
    if (this.#buffered.length + line.length > BUFFER_LENGTH) this.#dropped += 1
    else this.#buffered += line
    if (this.#buffered.length >= FLUSH_LENGTH) this.#writeOn()
    else this.#flushAfter(FLUSH_INTERVAL_MS)
  }

  /** Writes the buffered lines; `done` is called when they have been written or dropped. */
  flush(done?: () => void): void {
    if (done !== undefined) this.#waiting.push(done)
    this.#writeOn()
  }

  #flushAfter(timeMs: number): void {
    if (this.#isFlushDue) return
    this.#isFlushDue = true
    setTimeout(() => {
      this.#isFlushDue = false
      this.#writeOn()
    }, timeMs).unref()
  }

  #writeOn(): void {
    if (this.#isWriting) return
    if (this.#unwritten.length === 0) this.#unwritten = this.#takeBuffered()
    if (this.#unwritten.length === 0) {
      for (const done of this.#waiting.splice(0)) done()
      return
    }
    this.#isWriting = true
    write(STDOUT, this.#unwritten, (error, bytes) => {
      this.#isWriting = false
      if (error !== null && isBusy(error)) return this.#flushAfter(RETRY_MS)
      this.#unwritten = error === null ? this.#unwritten.subarray(bytes) : NOTHING
      const isMore = this.#unwritten.length > 0 || this.#buffered.length >= FLUSH_LENGTH || this.#waiting.length > 0
      if (isMore) this.#writeOn()
      else if (this.#buffered !== '') this.#flushAfter(FLUSH_INTERVAL_MS)
    })
  }

  #takeBuffered(): Buffer {
    const taken = Buffer.from(this.#dropped === 0 ? this.#buffered : this.#buffered + droppedLine(this.#dropped))
    this.#buffered = ''
    this.#dropped = 0
    return taken
  }
}

/** The output of this process, opened by its first logger. */
let stdout: BufferedStdout | undefined

function droppedLine(count: number): string {
  return `${JSON.stringify({ level: 'warn', time: new Date(), count, msg: 'log lines dropped: nobody read them in time' })}\n`
}

/** Writes synchronously, because the event loop has ended. */
function writeAtExit(bytes: Buffer): void {
  const pause = new Int32Array(new SharedArrayBuffer(4))
  const endsAt = performance.now() + EXIT_WRITE_MS
  let left = bytes
  while (left.length > 0 && performance.now() < endsAt) {
    try {
      left = left.subarray(writeSync(STDOUT, left))
    } catch (error) {
      if (!isBusy(error)) return
      Atomics.wait(pause, 0, 0, RETRY_MS)
    }
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'EAGAIN' || error.code === 'EBUSY')
}
