// All processes below one, as the system lists them.
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { findProcess } from '../src/processes/process-table.ts'

/** The ids of the children of a process, of theirs, and so on. */
export function descendants(pid: number): number[] {
  const children = allProcesses().filter((other) => findProcess(other)?.parentPid === pid)
  return children.flatMap((child) => [child, ...descendants(child)])
}

function allProcesses(): number[] {
  const names = existsSync('/proc/self')
    ? readdirSync('/proc')
    : execFileSync('ps', ['-A', '-o', 'pid='], { encoding: 'utf8' }).split('\n')
  return names.map(Number).filter((pid) => pid > 0)
}
