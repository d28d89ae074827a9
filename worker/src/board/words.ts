/** What the board says of a job. All of it comes from Redis, which anyone may have written to: nothing is passed on unchecked. */
import { isJobData, isJobResult, jobNames } from '@spillway/client/protocol/job'

/** Times of a BullMQ job, in epoch milliseconds by the clocks of those who wrote them. */
export interface ShownJob {
  name: string
  timestamp: number
  processedOn?: number | null
  finishedOn?: number | null
  failedReason?: string
  returnvalue?: unknown
}

/** A title that tells the story so far: `verify · answered: waited 1.2 s, hashed in 14 ms`. */
export function describeJob({ name, timestamp, processedOn, returnvalue, failedReason }: ShownJob): string {
  const title = jobNames.find((known) => known === name) ?? 'unknown job'
  if (isJobResult(returnvalue)) {
    const { outcome, queueWaitMs, serviceMs } = returnvalue
    const end = outcome === 'expired' ? '' : `, hashed in ${duration(serviceMs)}`
    return `${title} · ${outcome}: waited ${duration(queueWaitMs)}${end}`
  }
  if (failedReason) return `${title} · failed`
  return processedOn ? `${title} · waited ${duration(processedOn - timestamp)}` : title
}

/** When a job was added and until when it is of use, instead of what it carries. */
export function describeData(data: unknown): Record<string, unknown> {
  if (!isJobData(data)) return { malformed: true }
  return { enqueuedAt: iso(data.enqueuedAt), deadline: iso(data.deadline) }
}

function duration(ms: number): string {
  return ms < 1_000 ? `${Math.round(Math.max(0, ms))} ms` : `${(ms / 1_000).toFixed(1)} s`
}

/** Undefined for a number that is no date. */
function iso(epochMs: number): string | undefined {
  const date = new Date(epochMs)
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString()
}
