/**
 * Reports on the queue for metrics and the live page: depth, age, finished jobs, workers, read in
 * one round trip on demand. Contains no sealed data.
 */

import type { RedisConnection } from '../redis/connect.js'
import { defineScript } from '../redis/script.js'
import { capacityKey, liveWorkers, type WorkerCapacity } from '../wire/capacity.js'
import { isJobData, isJobResult, type JobResult } from '../wire/job.js'
import { absentKey, jobKey, lineKey, queueKey, toEntries } from './keys.js'

/** The highest age of a report: many readers cost Redis no more than one. */
const FRESH_FOR_MS = 500
/** The number of completed jobs to report times of, and their highest age. */
const RECENT_JOBS = 100
const RECENT_MS = 60_000

export interface QueueReport {
  /**
   * Jobs by state; absent ones were passed over or set aside. Finished jobs only while they are
   * kept.
   */
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
}

export interface QueueReporter {
  /** Rejects when Redis does not answer. */
  read(): Promise<QueueReport>
}

const readReport = defineScript('readReport-9')

export function createQueueReporter({ redis, prefix }: { redis: RedisConnection; prefix: string }): QueueReporter {
  const states = ['wait', 'prioritized', 'active', 'completed', 'failed', 'meta'] as const
  const ofQueue = states.map((state) => queueKey(prefix, state))
  const keys = [capacityKey(prefix), ...ofQueue, absentKey(prefix), lineKey(prefix)]
  let answer: Promise<QueueReport> | undefined
  let askedAt = Number.NEGATIVE_INFINITY

  async function ask(): Promise<QueueReport> {
    return parseReport(await readReport(redis, keys, jobKey(prefix), RECENT_JOBS, RECENT_MS))
  }

  return {
    read() {
      if (answer === undefined || performance.now() - askedAt > FRESH_FOR_MS) {
        askedAt = performance.now()
        answer = ask()
      }
      return answer
    },
  }
}

function parseReport(reply: unknown): QueueReport {
  if (!Array.isArray(reply)) throw new Error('Redis gave no report')
  const [at, waiting, deferred, active, completed, failed, paused, ...rest]: unknown[] = reply
  const [nextHeld, nextDeferred, results, pairs, absent, abandoned] = rest
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
