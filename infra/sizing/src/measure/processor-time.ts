// Processor time of processes, from the kernel's table.
import { readdirSync, readFileSync } from 'node:fs'

/** Clock ticks a second in /proc: 100 on every Linux that Node runs on. */
const TICK_MS = 10

interface ProcessRow {
  pid: number
  parentPid: number
  /** With all threads, those that ended included. */
  processorMs: number
}

/** Milliseconds of processor time that these processes have used so far, with their children. */
export function processorMs(pids: number[]): number {
  const rows = readRows()
  const wanted = new Set(pids)
  for (const { pid, parentPid } of rows) if (wanted.has(parentPid)) wanted.add(pid)
  return rows.filter(({ pid }) => wanted.has(pid)).reduce((sum, row) => sum + row.processorMs, 0)
}

/** The memory of a process that is in use, in MiB. */
export function memoryMib(pid: number): number {
  const [, kib = '0'] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kib) / 1_024
}

/** The processes whose command line holds all of these words. */
export function findPids(...words: string[]): number[] {
  return pids().filter((pid) => {
    const command = read(`/proc/${pid}/cmdline`)?.replaceAll('\0', ' ')
    return command !== undefined && words.every((word) => command.includes(word))
  })
}

function pids(): number[] {
  return readdirSync('/proc').map(Number).filter(Number.isInteger)
}

function readRows(): ProcessRow[] {
  return pids().flatMap((pid) => {
    // The name, in parentheses, may hold anything; the fields after it are numbers.
    const fields = read(`/proc/${pid}/stat`)
      ?.replace(/^.*\) /s, '')
      .split(' ')
    if (fields === undefined) return []
    return [{ pid, parentPid: Number(fields[1]), processorMs: (Number(fields[11]) + Number(fields[12])) * TICK_MS }]
  })
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
