/** What the live page is told each second: numbers as they are, counters as they stand; rates are the page's to work out. */
import type { PasswordClient } from '@spillway/worker/client'
import type { QueueReport, QueueReporter } from '@spillway/worker/queue-report'
import type { GatewayMetrics } from './metrics.js'

interface Percentiles {
  p50: number
  p95: number
}

export interface LiveState {
  /** Epoch milliseconds. */
  at: number
  /** Null while Redis does not answer. */
  queue: (QueueReport['jobs'] & Pick<QueueReport, 'paused' | 'oldestMs'>) | null
  workers: QueueReport['workers']
  /** Of the jobs that finished last; null when none is kept. */
  times: { jobs: number; queueWaitMs: Percentiles; serviceMs: Percentiles } | null
  /** Until all jobs that wait now, and one more, would be answered; null when no worker is alive. */
  predictedWaitMs: number | null
  jobsPerSecond: number
  /** Requests that this gateway answered since it started, by the kind of their end. */
  requests: Record<RequestEnd, number>
}

const requestEnds = ['answered', 'ticket', 'rejected', 'refused', 'failed', 'gone'] as const
type RequestEnd = (typeof requestEnds)[number]

export async function liveState(sources: {
  metrics: GatewayMetrics
  passwords: PasswordClient
  reporter: QueueReporter
}): Promise<LiveState> {
  const { metrics, passwords, reporter } = sources
  const report = await reporter.read().catch(() => undefined)
  const predictedMs = passwords.predictedWaitMs('deferred')
  return {
    at: Date.now(),
    queue: report ? { ...report.jobs, paused: report.paused, oldestMs: report.oldestMs } : null,
    workers: report?.workers.sort((a, b) => a.name.localeCompare(b.name)) ?? [],
    times: report ? timesOf(report) : null,
    predictedWaitMs: Number.isFinite(predictedMs) ? predictedMs : null,
    jobsPerSecond: passwords.load().jobsPerSecond,
    requests: await requestsOf(metrics),
  }
}

function timesOf({ recent }: QueueReport): LiveState['times'] {
  const hashed = recent.filter(({ outcome }) => outcome === 'answered')
  if (hashed.length === 0) return null
  return {
    jobs: hashed.length,
    queueWaitMs: percentiles(hashed.map(({ queueWaitMs }) => queueWaitMs)),
    serviceMs: percentiles(hashed.map(({ serviceMs }) => serviceMs)),
  }
}

/** By nearest rank; of at least one value. */
function percentiles(values: number[]): Percentiles {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.ceil(share * sorted.length) - 1] ?? 0
  return { p50: at(0.5), p95: at(0.95) }
}

async function requestsOf({ requests }: GatewayMetrics): Promise<LiveState['requests']> {
  const totals = { answered: 0, ticket: 0, rejected: 0, refused: 0, failed: 0, gone: 0 }
  for (const { labels, value } of (await requests.get()).values) {
    if (String(labels.route).startsWith('/v1/')) totals[endOf(String(labels.outcome), Number(labels.status))] += value
  }
  return totals
}

function endOf(outcome: string, status: number): RequestEnd {
  if (outcome === 'ticket') return 'ticket'
  if (outcome === 'client_gone') return 'gone'
  // These are said on purpose; any other 503 is that of a part that is not reachable.
  if (outcome === 'busy' || outcome === 'too_many_requests') return 'refused'
  if (status < 400) return 'answered'
  return status < 500 ? 'rejected' : 'failed'
}
