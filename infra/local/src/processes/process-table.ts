// What Node cannot tell about another process: from /proc where there is one, from ps elsewhere (macOS).
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'

export interface ProcessFacts {
  parentPid: number
  /** The command line, arguments separated by spaces. */
  command: string
  /** Ended, but not yet collected by its parent: kill(pid, 0) still succeeds. */
  zombie: boolean
}

const hasProc = existsSync('/proc/self/stat')

/** The facts of a process, or undefined when there is none with this id. */
export function findProcess(pid: number): ProcessFacts | undefined {
  try {
    return hasProc ? readProc(pid) : askPs(pid)
  } catch {
    return undefined
  }
}

/** Whether a process still runs. */
export function isRunning(pid: number): boolean {
  const found = findProcess(pid)
  return found !== undefined && !found.zombie
}

function readProc(pid: number): ProcessFacts {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The second field is the program's name in parentheses, and may itself hold spaces and parentheses.
  const [state, parentPid] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()
  return { parentPid: Number(parentPid), command, zombie: state === 'Z' }
}

function askPs(pid: number): ProcessFacts | undefined {
  const line = execFileSync('ps', ['-o', 'ppid=,stat=,command=', '-p', String(pid)], { encoding: 'utf8' }).trim()
  const [, parentPid, state, command] = /^(\d+)\s+(\S+)\s+(.*)$/.exec(line) ?? []
  if (parentPid === undefined || state === undefined || command === undefined) return undefined
  return { parentPid: Number(parentPid), command, zombie: state.startsWith('Z') }
}
