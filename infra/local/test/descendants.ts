// All processes below one, as the system lists them.
import { findProcess, listProcesses } from '../src/processes/process-table.ts'

/** The ids of the children of a process, of theirs, and so on. */
export function descendants(pid: number): number[] {
  const children = listProcesses().filter((other) => findProcess(other)?.parentPid === pid)
  return children.flatMap((child) => [child, ...descendants(child)])
}
