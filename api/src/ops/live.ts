/** The state that the live page polls each second: failures, the queue, the workers. */

import type { PasswordClient } from '@spillway/queue/client'
import type { QueueReporter } from '@spillway/queue/report'
import type { FastifyInstance } from 'fastify'
import type { GatewayConfig } from '../config.js'
import type { Post } from '../mail/post.js'
import type { OverloadGuard } from '../overload.js'
import { outcomeOf, type RequestOutcome } from '../schemas/outcomes.js'
import { findingsOf } from './findings.js'
import type { GatewayMetrics } from './metrics.js'

interface LiveOptions {
  config: GatewayConfig
  metrics: GatewayMetrics
  passwords: PasswordClient
  reporter: QueueReporter
  guard: OverloadGuard
  /** Undefined if no mail is sent. */
  post: Post | undefined
}

export async function livePlugin(app: FastifyInstance, options: LiveOptions): Promise<void> {
  const recent = new RecentRequests(options.metrics)
  app.addHook('onClose', () => recent.close())
  app.get('/live.json', async (_request, reply) =>
    reply.header('cache-control', 'no-store').send(await liveState(options, await recent.read())),
  )
}

export type LiveState = Awaited<ReturnType<typeof liveState>>

async function liveState(
  { passwords, reporter, guard, post, config: { ticketTtlMs: ticketLifeMs } }: LiveOptions,
  { outcomes, reasons }: RequestCounts,
) {
  const [report, mails] = await Promise.all([
    reporter.read().catch(() => undefined),
    post?.state().catch(() => undefined),
  ])
  const delayMs = guard.delayMs()
  const predictedMs = passwords.estimates.predictedWaitMs()
  return {
    findings: findingsOf({ report, mails, reasons, delayMs, ticketLifeMs }),
    /** Null while Redis does not answer. */
    queue: report ? { ...report.jobs, paused: report.paused, oldestMs: report.oldestMs } : null,
    line: passwords.estimates.line(),
    workers: report?.workers.sort((a, b) => a.name.localeCompare(b.name)) ?? [],
    /** Time until all waiting jobs have results; null when no worker is alive, or the queue is paused. */
    predictedWaitMs: Number.isFinite(predictedMs) ? predictedMs : null,
    jobsPerSecond: passwords.estimates.load().jobsPerSecond,
    /** How long requests recently waited until this gateway began with them. */
    delayMs,
    /** Requests to this gateway in the last minute. */
    requests: outcomes,
  }
}

interface RequestCounts {
  outcomes: Record<RequestOutcome, number>
  /** Why requests were refused or failed: a reason of the metrics, or `internal_error`. */
  reasons: Record<string, number>
}

const SAMPLE_MS = 5_000
/** The samples of a minute. */
const SAMPLES = 12

/** The requests of the last minute: the counters of the metrics minus their values a minute ago. */
export class RecentRequests {
  readonly #metrics: GatewayMetrics
  readonly #samples: RequestCounts[] = []
  readonly #timer: NodeJS.Timeout

  constructor(metrics: GatewayMetrics) {
    this.#metrics = metrics
    this.#timer = setInterval(() => void this.sample(), SAMPLE_MS).unref()
  }

  async sample(): Promise<void> {
    this.#samples.push(await this.#count())
    if (this.#samples.length > SAMPLES) this.#samples.shift()
  }

  async read(): Promise<RequestCounts> {
    const [before] = this.#samples
    const { outcomes, reasons } = await this.#count()
    return { outcomes: less(outcomes, before?.outcomes), reasons: less(reasons, before?.reasons) }
  }

  close(): void {
    clearInterval(this.#timer)
  }

  async #count(): Promise<RequestCounts> {
    const { requests, refused } = this.#metrics
    const counted = await requests.get()
    const reasons = new Map((await refused.get()).values.map(({ labels, value }) => [String(labels.reason), value]))
    const outcomes = { answered: 0, ticket: 0, rejected: 0, refused: 0, failed: 0 }
    let errors = 0
    for (const { labels, value } of counted.values) {
      if (!String(labels.route).startsWith('/v1/')) continue
      outcomes[outcomeOf(Number(labels.status), String(labels.outcome))] += value
      if (labels.outcome === 'internal_error') errors += value
    }
    return { outcomes, reasons: { ...Object.fromEntries(reasons), internal_error: errors } }
  }
}

function less<Name extends string>(
  now: Record<Name, number>,
  before: Record<Name, number> | undefined,
): Record<Name, number> {
  const left = { ...now }
  if (before !== undefined) for (const name in now) left[name] = now[name] - (before[name] ?? 0)
  return left
}
