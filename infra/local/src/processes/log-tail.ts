// The end of what a process printed, short enough to be part of a sentence.
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'

/** The last lines of some output, on one line. */
export function logTail(output: string): string {
  return output.trim().split('\n').slice(-3).join(' / ').slice(-400) || '(it said nothing)'
}

/** The last lines of a log file, however long it is. */
export function logTailOf(logFile: string): string {
  const fd = openSync(logFile, 'r')
  const { size } = fstatSync(fd)
  const end = Buffer.alloc(Math.min(size, 4_096))
  readSync(fd, end, 0, end.length, size - end.length)
  closeSync(fd)
  return logTail(end.toString())
}
