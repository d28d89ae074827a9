/** Reports on the queue for metrics and the live page, read on demand. No sealed data. */

import { within } from '@spillway/common/within'
import type { RedisConnection } from '../redis/connect.js'
import { defineScript } from '../redis/script.js'
import { capacityKey, liveWorkers, type WorkerCapacity } from '../wire/capacity.js'
import { isJobData, isJobResult, type JobResult } from '../wire/job.js'
import { absentKey, jobKey, lineKey, queueKey, toEntries } from './keys.js'

/** The highest age of a report: many readers cost Redis no more than one. */
const FRESH_FOR_MS = 500
/** The number of completed jobs to report times of, and of failed ones, and their highest age. */
const RECENT_JOBS = 100
const RECENT_MS = 60_000
/** Our own reasons are shorter. */
const REASON_MAX_LENGTH = 80
/** Milliseconds that one of several servers is waited for: operators do not wait for a silent one. */
const ANSWER_MS = 1_000

export interface QueueReport {
  /** By state; absent: passed over or set aside. Finished jobs only while they are kept. */
  jobs: { waiting: number; deferred: number; active: number; absent: number; completed: number; failed: number }
  /** Absent tickets dropped at their deadline or above the cap, since Redis has had its data. */
  abandoned: number
  /** Whether operators have paused the queue: workers then take no jobs. */
  paused: boolean
  /** How long the next job of each lane has waited; 0 for an empty lane. */
  oldestMs: { waiting: number; deferred: number }
  workers: ({ id: string } & WorkerCapacity)[]
  /** The last jobs that were completed within a minute, newest first. */
  recent: JobResult[]
  /** Jobs that failed within a minute, and why the last of them did. Redis's text, not trusted. */
  failedLately: { count: number; reason: string }
}

const readReport = defineScript('readReport-9')

/** Reports on a queue in one Redis server, or in several as one: see {@link combine}. */
export class QueueReporter {
  readonly #connections: readonly RedisConnection[]
  readonly #prefix: string
  #answer: Promise<QueueReport> | undefined
  #askedAt = Number.NEGATIVE_INFINITY

  constructor(connections: readonly RedisConnection[], prefix: string) {
    this.#connections = connections
    this.#prefix = prefix
  }

  /** Rejects when no Redis server answers. */
  read(): Promise<QueueReport> {
    if (this.#answer === undefined || performance.now() - this.#askedAt > FRESH_FOR_MS) {
      this.#askedAt = performance.now()
      this.#answer = this.#ask()
    }
    return this.#answer
  }

  async #ask(): Promise<QueueReport> {
    const [only, ...others] = this.#connections
    if (only !== undefined && others.length === 0) return await this.#askOne(only)
    const asked = this.#connections.map((redis) => within(ANSWER_MS, this.#askOne(redis)).catch(() => undefined))
    const reports = (await Promise.all(asked)).filter((report) => report !== undefined)
    if (reports.length === 0) throw new Error('no Redis gave a report')
    return reports.reduce(combine)
  }

  async #askOne(redis: RedisConnection): Promise<QueueReport> {
    const prefix = this.#prefix
    const states = ['wait', 'prioritized', 'active', 'completed', 'failed', 'meta'] as const
    const ofQueue = states.map((state) => queueKey(prefix, state))
    const keys = [capacityKey(prefix), ...ofQueue, absentKey(prefix), lineKey(prefix)]
    return parseReport(await readReport(redis, keys, jobKey(prefix), RECENT_JOBS, RECENT_MS))
  }
}

/** Jobs add up, and the oldest counts. A worker tells each server the jobs that it finished there. */
function combine(a: QueueReport, b: QueueReport): QueueReport {
  const workers = new Map(a.workers.map((worker) => [worker.id, worker]))
  for (const worker of b.workers) {
    const finished = combineCounts(worker.finished, workers.get(worker.id)?.finished)
    workers.set(worker.id, { ...worker, finished })
  }
  return {
    jobs: combineCounts(a.jobs, b.jobs),
    abandoned: a.abandoned + b.abandoned,
    paused: a.paused || b.paused,
    oldestMs: combineCounts(a.oldestMs, b.oldestMs, Math.max),
    workers: [...workers.values()],
    recent: [...a.recent, ...b.recent],
    failedLately: {
      count: a.failedLately.count + b.failedLately.count,
      reason: a.failedLately.reason || b.failedLately.reason,
    },
  }
}

/** Combines two counts name by name [their sums]. */
export function combineCounts<Name extends string>(
  one: Record<Name, number>,
  other: Record<Name, number> | undefined,
  by: (a: number, b: number) => number = (a, b) => a + b,
): Record<Name, number> {
  const combined = { ...one }
  if (other !== undefined) for (const name in one) combined[name] = by(one[name], other[name])
  return combined
}

function parseReport(reply: unknown): QueueReport {
  if (!Array.isArray(reply)) throw new Error('Redis gave no report')
  const [at, waiting, deferred, active, completed, failed, paused, ...rest]: unknown[] = reply
  const [nextHeld, nextDeferred, results, pairs, absent, abandoned, failures, reason] = rest
  const ageMs = (json: unknown) => {
    const data = parse(json)
    return isJobData(data) ? Math.max(0, Number(at) - data.enqueuedAt) : 0
  }
  return {
    jobs: {
      ...{ waiting: Number(waiting), deferred: Number(deferred), active: Number(active), absent: Number(absent) },
      ...{ completed: Number(completed), failed: Number(failed) },
    },
    abandoned: Number(abandoned),
    paused: paused === 1,
    oldestMs: { waiting: ageMs(nextHeld), deferred: ageMs(nextDeferred) },
    workers: [...liveWorkers(toEntries(pairs), Number(at))].map(([id, capacity]) => ({ id, ...capacity })),
    recent: toArray(results)
      .map(parse)
      .filter((result) => isJobResult(result)),
    failedLately: { count: Number(failures), reason: String(reason).slice(0, REASON_MAX_LENGTH) },
  }
}

function parse(json: unknown): unknown {
  try {
    return JSON.parse(String(json))
  } catch {
    return undefined
  }
}

function toArray(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}
