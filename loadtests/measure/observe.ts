// Watches a contender from the outside while something happens to it: processor time of each process, and bystanders.
import {
  memoryOf,
  type ProcessorTime,
  processorTime,
  processorTimeOfTree,
} from '@spillway/local/processes/processor-time'
import type { Part, Running } from '../contenders/contender.ts'
import { type Bystanders, watchBystanders } from './bystanders.ts'

export interface PartTime {
  role: string
  totalMs: number
  eventLoopMs: number
  /** Since it was started. */
  peakMb?: number
  readyMs?: number
}

export interface Observation<T> {
  result: T
  seconds: number
  /** Only processes that lived through it. */
  parts: PartTime[]
  /** What the generator, in this process, used of a core. Near a hundred the figures are about it. */
  generatorPercent: number
  bystanders: Bystanders
}

/** What a bystander asks costs processor time too: where that is the question, nobody stands by. */
export async function processorTimeOf<T>(
  running: Running,
  servers: readonly Part[],
  happening: () => Promise<T>,
): Promise<Omit<Observation<T>, 'bystanders'>> {
  const watched = [...running.parts, ...servers]
  const before = watched.map(timeOfPart)
  const generator = process.cpuUsage()
  const startMs = performance.now()
  const result = await happening()
  // Read as soon as it is over: what a server still does for callers that are gone belongs to nobody.
  const seconds = (performance.now() - startMs) / 1_000
  const after = watched.map(timeOfPart)
  const used = process.cpuUsage(generator)
  const parts = watched.flatMap(({ role, pid, readyMs }, index) => {
    const start = before[index]
    const end = after[index]
    if (start === undefined || end === undefined) return []
    const time = { totalMs: end.totalMs - start.totalMs, eventLoopMs: end.eventLoopMs - start.eventLoopMs }
    const memory = memoryOf(pid)
    return [
      { role, ...time, ...(memory && { peakMb: memory.peakBytes / 1e6 }), ...(readyMs !== undefined && { readyMs }) },
    ]
  })
  return { result, seconds, parts, generatorPercent: (used.user + used.system) / 10_000 / seconds }
}

/** @param servers the processes of PostgreSQL and Redis, which work for it as well */
export async function observe<T>(
  running: Running,
  servers: readonly Part[],
  happening: () => Promise<T>,
): Promise<Observation<T>> {
  const happened = processorTimeOf(running, servers, happening)
  const [observed, bystanders] = await Promise.all([
    happened,
    watchBystanders(running.url, running.neighbourPath, happened),
  ])
  return { ...observed, bystanders }
}

function timeOfPart(part: Part): ProcessorTime | undefined {
  return part.withChildren ? processorTimeOfTree(part.pid) : processorTime(part.pid)
}

/** The processor time of all processes in a role, in milliseconds. */
export function timeOf(parts: readonly PartTime[], role?: string): number {
  return parts.reduce((sum, part) => (role === undefined || part.role === role ? sum + part.totalMs : sum), 0)
}
