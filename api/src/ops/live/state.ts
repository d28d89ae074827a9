/** The data of the live page: the state of the queue and its workers, their recent history, and the requests of all gateways. */
import type { QueueReport, QueueReporter } from '@spillway/client/queue/report'
import type { PasswordClient } from '@spillway/client/queue-client'
import type { RequestOutcomes } from '../../http/metrics.js'
import type { GatewayReports } from './gateways.js'
import type { LiveHistory } from './history.js'

interface Percentiles {
  p50: number
  p95: number
}

export interface LiveState {
  /** Epoch milliseconds. */
  at: number
  /** Null while Redis does not answer. */
  queue: (QueueReport['jobs'] & Pick<QueueReport, 'paused' | 'oldestMs' | 'abandoned'>) | null
  /** How far the line of each Redis server has come. */
  lines: { serving: number; last: number }[]
  workers: QueueReport['workers']
  /** Percentiles of the jobs that finished last; null when no job is kept. */
  times: { jobs: number; queueWaitMs: Percentiles; serviceMs: Percentiles } | null
  /** The predicted wait of a deferred job added now; null when no worker is alive. */
  predictedWaitMs: number | null
  jobsPerSecond: number
  /** The names of the live gateways, this one first. */
  gateways: string[]
  /** Requests of all live gateways by outcome: since each started, in the last minute, and the latter per second. */
  requests: RequestOutcomes
  requestsLately: RequestOutcomes
  requestsPerSecond: RequestOutcomes
  history: LiveHistory
}

export async function liveState(sources: {
  passwords: PasswordClient
  reporter: QueueReporter
  gateways: GatewayReports
  history: { read(): LiveHistory }
}): Promise<LiveState> {
  const { passwords, reporter, history } = sources
  const [report, gateways] = await Promise.all([reporter.read().catch(() => undefined), sources.gateways.read()])
  const predictedMs = passwords.predictedWaitMs('deferred')
  return {
    at: Date.now(),
    queue: report ? queueOf(report) : null,
    lines: passwords.redis.map(({ line }) => line()).map(({ serving, last }) => ({ serving, last })),
    workers: report?.workers.sort((a, b) => a.name.localeCompare(b.name)) ?? [],
    times: report ? timesOf(report) : null,
    predictedWaitMs: Number.isFinite(predictedMs) ? predictedMs : null,
    jobsPerSecond: passwords.load().jobsPerSecond,
    gateways: gateways.names,
    requests: gateways.total,
    requestsLately: gateways.lately,
    requestsPerSecond: gateways.perSecond,
    history: history.read(),
  }
}

function queueOf({ jobs, paused, oldestMs, abandoned }: QueueReport): LiveState['queue'] {
  return { ...jobs, paused, oldestMs, abandoned }
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

/** By the nearest-rank method; needs at least one value. */
export function percentiles(values: number[]): Percentiles {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.ceil(share * sorted.length) - 1] ?? 0
  return { p50: at(0.5), p95: at(0.95) }
}
