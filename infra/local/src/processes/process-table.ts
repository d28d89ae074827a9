// Facts about other processes: from /proc if it exists, else from ps (macOS).
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'

interface ProcessFacts {
  parentPid: number
  /** The command line, arguments separated by spaces. */
  command: string
  /** Ended, but not yet reaped by its parent: kill(pid, 0) still succeeds. */
  zombie: boolean
}

const hasProc = existsSync('/proc/self/stat')

export function findProcess(pid: number): ProcessFacts | undefined {
  return hasProc ? askProc(pid) : askPs(pid)
}

export function isRunning(pid: number): boolean {
  const found = findProcess(pid)
  return found !== undefined && !found.zombie
}

export function listProcesses(): number[] {
  const names = hasProc ? readdirSync('/proc') : ps('-A', '-o', 'pid=')?.split('\n')
  return (names ?? []).map(Number).filter((pid) => pid > 0)
}

export function findPids(...words: string[]): number[] {
  return listProcesses().filter((pid) => {
    const command = findProcess(pid)?.command
    return command !== undefined && words.every((word) => command.includes(word))
  })
}

function askProc(pid: number): ProcessFacts | undefined {
  const [state, parentPid] = readStat(pid) ?? []
  const command = readProc(`${pid}/cmdline`)?.replaceAll('\0', ' ').trim()
  if (parentPid === undefined || command === undefined) return undefined
  return { parentPid: Number(parentPid), command, zombie: state === 'Z' }
}

function askPs(pid: number): ProcessFacts | undefined {
  const line = ps('-o', 'ppid=,stat=,command=', '-p', String(pid))?.trim() ?? ''
  const [, parentPid, state, command] = /^(\d+)\s+(\S+)\s+(.*)$/.exec(line) ?? []
  if (parentPid === undefined || state === undefined || command === undefined) return undefined
  return { parentPid: Number(parentPid), command, zombie: state.startsWith('Z') }
}

function ps(...args: string[]): string | undefined {
  try {
    return execFileSync('ps', args, { encoding: 'utf8' })
  } catch {
    return undefined
  }
}

/** A file of /proc, or undefined when its process has ended or this is not Linux. */
export function readProc(path: string): string | undefined {
  try {
    return readFileSync(`/proc/${path}`, 'utf8')
  } catch {
    return undefined
  }
}

/** The fields of /proc/<pid>/stat from the third on, which is the state; see proc_pid_stat(5). */
export function readStat(pid: number | string): string[] | undefined {
  const stat = readProc(`${pid}/stat`)
  // The second field, the program's name in parentheses, may hold spaces and parentheses.
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ')
}
