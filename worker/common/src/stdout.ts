/**
 * Buffered standard output: writing each log line by itself costs a worker a quarter of its event loop. Lines that cannot be written
 * (closed pipe, full disk) are dropped, so that nothing waits for them, least of all the exit. Lines beyond the buffer of a reader that
 * stopped reading are dropped and counted in one line. SonicBoom, pino's default, is not an alternative: at the exit it repeats failed
 * writes for ever, and it throws the error of a full disk.
 */
import { write, writeSync } from 'node:fs'

const STDOUT = 1
/** Lines are written after this many milliseconds or characters, whichever comes first. */
const FLUSH_INTERVAL_MS = 100
const FLUSH_LENGTH = 8 * 1_024
/** The size of the buffer in characters: some fifty thousand lines. */
const BUFFER_LENGTH = 8 * 1_024 * 1_024
/** The pause before a write to a full non-blocking pipe is retried, and the time limit of retries at the exit. */
const RETRY_MS = 20
const EXIT_WRITE_MS = 1_000

const NOTHING = Buffer.alloc(0)

export interface BufferedOutput {
  write(line: string): void
  /** Writes the buffered lines; `done` is called when they have been written or dropped. */
  flush(done?: () => void): void
}

let stdout: BufferedOutput | undefined

/** The buffered output of this process. Buffered lines are written at exit; only a killed process loses them. */
export function bufferedStdout(): BufferedOutput {
  stdout ??= bufferStdout()
  return stdout
}

function bufferStdout(): BufferedOutput {
  let buffered = ''
  let dropped = 0
  let unwritten: Buffer = NOTHING
  let isWriting = false
  let isFlushDue = false
  let waiting: (() => void)[] = []

  function flushAfter(timeMs: number): void {
    if (isFlushDue) return
    isFlushDue = true
    setTimeout(() => {
      isFlushDue = false
      writeOn()
    }, timeMs).unref()
  }

  function writeOn(): void {
    if (isWriting) return
    if (unwritten.length === 0) unwritten = takeBuffered()
    if (unwritten.length === 0) {
      for (const done of waiting.splice(0)) done()
      return
    }
    isWriting = true
    write(STDOUT, unwritten, (error, bytes) => {
      isWriting = false
      if (error !== null && isBusy(error)) return flushAfter(RETRY_MS)
      unwritten = error === null ? unwritten.subarray(bytes) : NOTHING
      if (unwritten.length > 0 || buffered.length >= FLUSH_LENGTH || waiting.length > 0) writeOn()
      else if (buffered !== '') flushAfter(FLUSH_INTERVAL_MS)
    })
  }

  function takeBuffered(): Buffer {
    const taken = Buffer.from(dropped === 0 ? buffered : buffered + droppedLine(dropped))
    buffered = ''
    dropped = 0
    return taken
  }

  process.once('exit', () => {
    // Bytes of a pending write belong to a thread of the pool.
    writeAtExit(isWriting ? takeBuffered() : Buffer.concat([unwritten, takeBuffered()]))
  })

  return {
    write(line) {
      if (buffered.length + line.length > BUFFER_LENGTH) dropped += 1
      else buffered += line
      if (buffered.length >= FLUSH_LENGTH) writeOn()
      else flushAfter(FLUSH_INTERVAL_MS)
    },
    flush(done) {
      if (done !== undefined) waiting = [...waiting, done]
      writeOn()
    },
  }
}

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
