// The tail of a process's output, short enough for an error message.
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'

/** The last lines of an output, joined into one. */
export function logTail(output: string): string {
  return output.trim().split('\n').slice(-3).join(' / ').slice(-400) || '(no output)'
}

/** The last lines of a log file of any size. */
export function logTailOf(logFile: string): string {
  const fd = openSync(logFile, 'r')
  const { size } = fstatSync(fd)
  const end = Buffer.alloc(Math.min(size, 4_096))
  readSync(fd, end, 0, end.length, size - end.length)
  closeSync(fd)
  return logTail(end.toString())
}
