// Watches a contender from the outside while something happens to it: processor time of each process, and bystanders.
import type { Running } from '../contenders/contender.ts'
import { type Bystanders, watchBystanders } from './bystanders.ts'
import { processorTime } from './processor.ts'

export interface PartTime {
  role: string
  totalMs: number
  eventLoopMs: number
}

export interface Observation<T> {
  result: T
  seconds: number
  /** Only processes that lived through it. */
  parts: PartTime[]
  bystanders: Bystanders
}

export async function observe<T>(running: Running, happening: () => Promise<T>): Promise<Observation<T>> {
  const before = running.parts.map((part) => processorTime(part.pid))
  const startMs = performance.now()
  const happened = happening()
  const watched = watchBystanders(running.url, running.neighbourPath, happened)
  const result = await happened
  const seconds = (performance.now() - startMs) / 1_000
  const parts = running.parts.flatMap(({ role, pid }, index) => {
    const start = before[index]
    const end = processorTime(pid)
    if (start === undefined || end === undefined) return []
    return [{ role, totalMs: end.totalMs - start.totalMs, eventLoopMs: end.eventLoopMs - start.eventLoopMs }]
  })
  return { result, seconds, parts, bystanders: await watched }
}

/** The processor time of all processes in a role, in milliseconds. */
export function timeOf(parts: readonly PartTime[], role?: string): number {
  return parts.reduce((sum, part) => (role === undefined || part.role === role ? sum + part.totalMs : sum), 0)
}
