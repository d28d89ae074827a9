/** What the live page at `/` of the ops port asks for every second: what fails, queue, workers, outcomes. */
import type { QueueReport, QueueReporter } from '@spillway/queue/jobs/report'
import type { PasswordClient, RedisConnection } from '@spillway/queue/queue-client'
import type { FastifyInstance } from 'fastify'
import type { GatewayConfig } from '../config.js'
import type { LoadShedder } from '../plugins/load-shedding/load-shedder.js'
import type { GatewayMetrics } from '../plugins/metrics.js'
import { requestOutcomes } from '../schemas/outcomes.js'
import { findingsOf } from './findings.js'
import { GatewayReports } from './gateways.js'

interface LiveOptions {
  config: GatewayConfig
  metrics: GatewayMetrics
  passwords: PasswordClient
  reporter: QueueReporter
  shedder: Pick<LoadShedder, 'delayMs'>
  operatorsRedis: readonly { connection: RedisConnection }[]
}

export async function livePlugin(app: FastifyInstance, options: LiveOptions): Promise<void> {
  const { passwords, reporter, shedder, config } = options
  const history = new LiveHistory(passwords)
  const gateways = new GatewayReports({
    ...{ passwords, shedder, metrics: options.metrics, queuePrefix: config.QUEUE_PREFIX, log: app.log },
    redis: options.operatorsRedis.map(({ connection }) => connection),
  })
  app.addHook('onClose', async () => {
    history.close()
    await gateways.close()
  })
  app.get('/live.json', async (_request, reply) =>
    reply
      .header('cache-control', 'no-store')
      .send(await liveState({ passwords, reporter, gateways, history, ticketLifeMs: config.TICKET_TTL_MS })),
  )
}

interface Percentiles {
  p50: number
  p95: number
}

export type LiveState = Awaited<ReturnType<typeof liveState>>

async function liveState(sources: {
  passwords: PasswordClient
  reporter: QueueReporter
  gateways: GatewayReports
  history: LiveHistory
  ticketLifeMs: number
}) {
  const { passwords, reporter, history, ticketLifeMs } = sources
  const [report, gateways] = await Promise.all([reporter.read().catch(() => undefined), sources.gateways.read()])
  const predictedMs = passwords.predictedWaitMs('deferred')
  const redis = passwords.redis.map(({ address, isUsable }) => ({ address, isUsable: isUsable() }))
  return {
    at: Date.now(),
    findings: findingsOf({ report, redis, gateways: gateways.each, ticketLifeMs }),
    /** Null while Redis does not answer. */
    queue: report
      ? { ...report.jobs, paused: report.paused, oldestMs: report.oldestMs, abandoned: report.abandoned }
      : null,
    lines: passwords.redis.map(({ line }) => line()).map(({ serving, last }) => ({ serving, last })),
    workers: report?.workers.sort((a, b) => a.name.localeCompare(b.name)) ?? [],
    /** Of the jobs that finished within the last minute; null when no job did. */
    times: report ? timesOf(report) : null,
    /** Of a deferred job added now; null when no worker is alive, or the queue is paused. */
    predictedWaitMs: Number.isFinite(predictedMs) ? predictedMs : null,
    jobsPerSecond: passwords.load().jobsPerSecond,
    /** The live gateways, this one first; `lately` is the last minute. */
    gateways: gateways.each.map(({ reasons, ...gateway }) => gateway),
    /** Every outcome, in the order of the page. */
    outcomes: requestOutcomes,
    /** Requests of all gateways by outcome: since the start, in the last minute, and per second. */
    requests: gateways.total,
    requestsLately: gateways.lately,
    requestsPerSecond: gateways.perSecond,
    history: history.read(),
  }
}

function timesOf({ recent }: QueueReport) {
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

// The last minutes, sampled from the load that admission reads anyway: it costs Redis nothing.

const SAMPLE_MS = 1_000
/** Five minutes. */
const KEPT = 300
/** Samples of a rate, because jobs end in bursts; the present capacity is the highest of them. */
const RATE_SAMPLES = 5
/** A peak of fewer samples is cut off at the top. It would flatten everything else for minutes. */
const LASTING_SAMPLES = 3
/** How long a peak is told, if no value reaches it. */
const PEAK_MS = 24 * 3_600_000

interface Sample {
  atMs: number
  known: boolean
  finished: number
  waiting: number
  capacityPerSecond: number
  finishedPerSecond: number | undefined
}

/** Samples until it is closed. */
export class LiveHistory {
  readonly #passwords: Pick<PasswordClient, 'load' | 'finishedJobs'>
  readonly #samples: Sample[] = []
  readonly #peaks = { waiting: new Peak(), finishedPerSecond: new Peak() }
  readonly #timer: NodeJS.Timeout

  constructor(passwords: Pick<PasswordClient, 'load' | 'finishedJobs'>) {
    this.#passwords = passwords
    this.#sample()
    this.#timer = setInterval(() => this.#sample(), SAMPLE_MS)
    this.#timer.unref()
  }

  #sample(): void {
    const { known, waiting, deferred, jobsPerSecond: capacityPerSecond } = this.#passwords.load()
    const finished = this.#passwords.finishedJobs()
    const atMs = performance.now()
    const before = this.#samples.at(-RATE_SAMPLES) ?? this.#samples[0]
    const finishedPerSecond = before && ((finished - before.finished) * 1_000) / (atMs - before.atMs)
    this.#samples.push({ atMs, known, finished, waiting: waiting + deferred, capacityPerSecond, finishedPerSecond })
    this.#peaks.waiting.sample(waiting + deferred)
    this.#peaks.finishedPerSecond.sample(finishedPerSecond ?? 0)
    if (this.#samples.length > KEPT) this.#samples.shift()
  }

  /** A value a second, oldest first; null without Redis. The scales are the tops of the charts. */
  read() {
    const waiting = this.#column('waiting')
    const finishedPerSecond = this.#column('finishedPerSecond')
    const capacityPerSecond = this.#column('capacityPerSecond')
    // A worker that has hashed nothing yet guesses its capacity: only the present one counts.
    const perSecond = Math.max(scaleOf(finishedPerSecond), scaleOf(capacityPerSecond.slice(-RATE_SAMPLES)))
    const scales = { waiting: scaleOf(waiting), perSecond }
    const peaks = { waiting: this.#peaks.waiting.read(), finishedPerSecond: this.#peaks.finishedPerSecond.read() }
    return { waiting, finishedPerSecond, capacityPerSecond, scales, peaks }
  }

  #column(name: 'waiting' | 'finishedPerSecond' | 'capacityPerSecond'): (number | null)[] {
    return this.#samples.map(({ known, [name]: value }) =>
      known && value !== undefined ? Math.round(value * 10) / 10 : null,
    )
  }

  close(): void {
    clearInterval(this.#timer)
  }
}

/** The highest value of about the last day, and when it was, in epoch milliseconds. */
export class Peak {
  readonly #now: () => number
  #highest = { value: 0, at: 0 }

  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  sample(value: number): void {
    const at = this.#now()
    const { value: highest, at: since } = this.#highest
    if (value >= highest || at - since > PEAK_MS) this.#highest = { value: Math.round(value * 10) / 10, at }
  }

  read() {
    return this.#highest
  }
}

/** The highest value that lasted, or was there just now, and at least 1. */
export function scaleOf(values: readonly (number | null)[]): number {
  const known = values.map((value) => value ?? 0)
  const lasting = known.map((_, index) => Math.min(...known.slice(index, index + LASTING_SAMPLES)))
  return Math.max(1, ...lasting, ...known.slice(-LASTING_SAMPLES))
}
