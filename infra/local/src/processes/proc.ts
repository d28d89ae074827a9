// Linux's /proc, read. Elsewhere there is nothing to read, and all is undefined.
import { readFileSync } from 'node:fs'

/** A file of /proc, or undefined when its process has ended or this is not Linux. */
export function readProc(path: string): string | undefined {
  try {
    return readFileSync(`/proc/${path}`, 'utf8')
  } catch {
    return undefined
  }
}

/** The fields of /proc/<pid>/stat from the third on, which is the state; see proc_pid_stat(5). */
export function readStat(pid: number): string[] | undefined {
  const stat = readProc(`${pid}/stat`)
  // The second field is the program's name in parentheses, and may itself hold spaces and parentheses.
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ')
}
