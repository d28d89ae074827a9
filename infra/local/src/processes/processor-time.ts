// Processor time of processes and of the machine, as the kernel counts it; pinned processes.
import { spawnSync } from 'node:child_process'
import { platform } from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { readProc, readStat } from './process-table.ts'

/** The unit of /proc/<pid>/stat: USER_HZ, 100 on every Linux that Node runs on. */
const MS_PER_TICK = 10

/**
 * Since its start, in milliseconds: all threads, and all children that ended and were waited for.
 * Undefined when it has ended, or this is not Linux.
 */
export function processorTime(pid: number): number | undefined {
  // utime, stime, cutime and cstime are fields 14 to 17.
  const ticks = readStat(pid)?.slice(11, 15).map(Number)
  return ticks && ticks.reduce((sum, part) => sum + part, 0) * MS_PER_TICK
}

/** The time of these processes and all their living descendants together, in milliseconds. */
export function processorMs(pids: readonly number[]): number {
  const all = new Set(pids.flatMap(withDescendants))
  return [...all].reduce((sum, pid) => sum + (processorTime(pid) ?? 0), 0)
}

export function childrenOf(pid: number): number[] {
  const children = readProc(`${pid}/task/${pid}/children`)?.trim() ?? ''
  return children.split(' ').filter(Boolean).map(Number)
}

function withDescendants(pid: number): number[] {
  return [pid, ...childrenOf(pid).flatMap(withDescendants)]
}

/** The time of all processors since boot; the hypervisor took `stolen` for other machines. */
function machineTime() {
  const line = readProc('stat')?.split('\n')[0]
  if (line === undefined) return undefined
  const [user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, stolen = 0] = line
    .trim()
    .split(/\s+/)
    .slice(1)
    .map((ticks) => Number(ticks) * MS_PER_TICK)
  return { busyMs: user + nice + system + irq + softirq, stolenMs: stolen, idleMs: idle + iowait }
}

/** Per cent of processor time that others used or stole meanwhile; undefined if unreadable. */
export async function backgroundLoad(lookForMs: number): Promise<number | undefined> {
  const before = machineTime()
  await sleep(lookForMs)
  const after = machineTime()
  if (before === undefined || after === undefined) return undefined
  const used = after.busyMs - before.busyMs + after.stolenMs - before.stolenMs
  const all = used + after.idleMs - before.idleMs
  return all === 0 ? 0 : (100 * used) / all
}

/** Linux with util-linux. */
export const canPin = platform === 'linux' && spawnSync('taskset', ['--version']).status === 0

export function pinned(command: string[], cores: readonly number[] | undefined): string[] {
  return cores === undefined || !canPin ? command : ['taskset', '-c', cores.join(','), ...command]
}

/** Moves a process with all its threads; later children inherit the cores. Silent on failure. */
export function moveTo(pid: number | undefined, cores: readonly number[]): void {
  spawnSync('taskset', ['-a', '-c', '-p', cores.join(','), String(pid)], { stdio: 'ignore' })
}
