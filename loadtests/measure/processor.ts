// Processor time from Linux's /proc: of a process with the children it has waited for, of its event loop alone, and of
// the whole machine; and the memory of a process. Elsewhere there is nothing to read and everything here is undefined.
import { readFileSync } from 'node:fs'

/** The unit of /proc/<pid>/stat: USER_HZ, 100 on every Linux that Node runs on. */
const MS_PER_TICK = 10
const NS_PER_MS = 1e6

export interface ProcessorTime {
  /** All threads, and all children that ended and were waited for. */
  totalMs: number
  /** The first thread alone, which in Node runs the event loop. */
  eventLoopMs: number
}

/** What a process has used since it started; undefined when it is gone or this is not Linux. */
export function processorTime(pid: number): ProcessorTime | undefined {
  const stat = read(`/proc/${pid}/stat`)
  if (stat === undefined) return undefined
  // The name in brackets may hold blanks; utime, stime, cutime and cstime are fields 14 to 17.
  const ticks = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 15)
    .map(Number)
  const eventLoopNs = Number(read(`/proc/${pid}/schedstat`)?.split(' ')[0] ?? 0)
  return { totalMs: ticks.reduce((sum, part) => sum + part, 0) * MS_PER_TICK, eventLoopMs: eventLoopNs / NS_PER_MS }
}

/** The same with all living descendants; their event loops are not its own. */
export function processorTimeOfTree(pid: number): ProcessorTime | undefined {
  const own = processorTime(pid)
  const childrenMs = childrenOf(pid).reduce((sum, child) => sum + (processorTimeOfTree(child)?.totalMs ?? 0), 0)
  return own && { ...own, totalMs: own.totalMs + childrenMs }
}

/** The processes it started that still run. */
export function childrenOf(pid: number): number[] {
  const children = read(`/proc/${pid}/task/${pid}/children`)?.trim() ?? ''
  return children.split(' ').filter(Boolean).map(Number)
}

/** The most memory a process has had at a time since it started, in megabytes: resident, what it shares included. */
export function peakMemoryMb(pid: number): number | undefined {
  const kilobytes = /^VmHWM:\s+(\d+) kB$/m.exec(read(`/proc/${pid}/status`) ?? '')?.[1]
  return kilobytes === undefined ? undefined : (Number(kilobytes) * 1_024) / 1e6
}

export interface MachineTime {
  busyMs: number
  /** Taken by the hypervisor for other machines. */
  stolenMs: number
  idleMs: number
}

/** What all processors together have done since boot. */
export function machineTime(): MachineTime | undefined {
  const line = read('/proc/stat')?.split('\n')[0]
  if (line === undefined) return undefined
  const [user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, stolen = 0] = line
    .trim()
    .split(/\s+/)
    .slice(1)
    .map((ticks) => Number(ticks) * MS_PER_TICK)
  return { busyMs: user + nice + system + irq + softirq, stolenMs: stolen, idleMs: idle + iowait }
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
