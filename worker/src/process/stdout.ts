/**
 * Standard output for lines that are written together: one by one they cost a worker a quarter of its event loop. What cannot be
 * written, because its reader has gone or the disk is full, is dropped: nothing waits for it, least of all the end. So is what a
 * reader that has stopped leaves no room for, and its count is a line of its own. By hand: SonicBoom, which pino would use, repeats
 * a failed write for ever at the exit, and throws what a full disk says.
 */
import { write, writeSync } from 'node:fs'

const STDOUT = 1
/** Lines are written at the latest after this long, or when they are this many characters. */
const GATHER_MS = 100
const GATHER_LENGTH = 8 * 1_024
/** Characters that are kept for a reader that does not read: some fifty thousand lines. */
const KEPT_LENGTH = 8 * 1_024 * 1_024
/** A pipe that does not block and is full is tried again after this long; at the exit, for so long in all. */
const AGAIN_MS = 20
const LAST_WRITE_MS = 1_000

const NOTHING = Buffer.alloc(0)

export interface GatheredOutput {
  write(line: string): void
  /** Writes what there is; `done` is called when it has been written, or dropped. */
  flush(done?: () => void): void
}

let stdout: GatheredOutput | undefined

/** The one of this process. An exit writes what is left; only a process that is killed takes its last lines along. */
export function gatheredStdout(): GatheredOutput {
  stdout ??= gatherStdout()
  return stdout
}

function gatherStdout(): GatheredOutput {
  let gathered = ''
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
    if (unwritten.length === 0) unwritten = takeGathered()
    if (unwritten.length === 0) {
      for (const done of waiting.splice(0)) done()
      return
    }
    isWriting = true
    write(STDOUT, unwritten, (error, bytes) => {
      isWriting = false
      if (error !== null && isBusy(error)) return flushAfter(AGAIN_MS)
      unwritten = error === null ? unwritten.subarray(bytes) : NOTHING
      if (unwritten.length > 0 || gathered.length >= GATHER_LENGTH || waiting.length > 0) writeOn()
      else if (gathered !== '') flushAfter(GATHER_MS)
    })
  }

  function takeGathered(): Buffer {
    const taken = Buffer.from(dropped === 0 ? gathered : gathered + droppedLine(dropped))
    gathered = ''
    dropped = 0
    return taken
  }

  process.once('exit', () => {
    // What is being written is in the hands of a thread.
    writeLast(isWriting ? takeGathered() : Buffer.concat([unwritten, takeGathered()]))
  })

  return {
    write(line) {
      if (gathered.length + line.length > KEPT_LENGTH) dropped += 1
      else gathered += line
      if (gathered.length >= GATHER_LENGTH) writeOn()
      else flushAfter(GATHER_MS)
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

/** Without an event loop. */
function writeLast(bytes: Buffer): void {
  const pause = new Int32Array(new SharedArrayBuffer(4))
  const endsAt = performance.now() + LAST_WRITE_MS
  let left = bytes
  while (left.length > 0 && performance.now() < endsAt) {
    try {
      left = left.subarray(writeSync(STDOUT, left))
    } catch (error) {
      if (!isBusy(error)) return
      Atomics.wait(pause, 0, 0, AGAIN_MS)
    }
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'EAGAIN' || error.code === 'EBUSY')
}
