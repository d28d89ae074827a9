/** What Bull Board shows of a job. Redis is not trusted, so everything shown is checked. */
import { isJobData, isJobResult, jobNames } from '@spillway/queue/wire/job'
import { isMailData } from '../mail/outbox.js'

/** Fields of a BullMQ job. Times are epoch milliseconds by the writer's clock. */
interface ShownJob {
  name: string
  timestamp: number
  processedOn?: number | null
  finishedOn?: number | null
  failedReason?: string
  returnvalue?: unknown
}

/** The title of a job, such as `verify · answered: waited 1.2 s, hashed in 14 ms`. */
export function describeJob({ name, timestamp, processedOn, returnvalue, failedReason }: ShownJob): string {
  const title = jobNames.find((known) => known === name) ?? 'unknown job'
  if (isJobResult(returnvalue)) {
    const { outcome, queueWaitMs, serviceMs } = returnvalue
    const end = outcome === 'skipped' ? '' : `, hashed in ${duration(serviceMs)}`
    return `${title} · ${outcome}: waited ${duration(queueWaitMs)}${end}`
  }
  if (failedReason) return `${title} · failed`
  return processedOn ? `${title} · waited ${duration(processedOn - timestamp)}` : title
}

/** The times of a job and the id of its request, shown in place of its data. */
export function describeData(data: unknown): Record<string, unknown> {
  if (!isJobData(data)) return { malformed: true }
  const { requestId, enqueuedAt, deadline } = data
  return { ...(requestId && { requestId }), enqueuedAt: iso(enqueuedAt), deadline: iso(deadline) }
}

/** The title of a mail. The board also shows the reason of a failure, which names no address. */
export function describeMail({ failedReason, finishedOn }: ShownJob): string {
  return failedReason ? `mail · ${finishedOn ? 'not sent' : 'to be tried again'}` : 'mail'
}

/** The time until which a mail may be sent, shown in place of its data. */
export function describeMailData(data: unknown): Record<string, unknown> {
  return isMailData(data) ? { deadline: iso(data.deadline) } : { malformed: true }
}

function duration(ms: number): string {
  return ms < 1_000 ? `${Math.round(Math.max(0, ms))} ms` : `${(ms / 1_000).toFixed(1)} s`
}

/** Undefined for an invalid date. */
function iso(epochMs: number): string | undefined {
  const date = new Date(epochMs)
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString()
}
