/** Reports on the queue for metrics and the live page, read on demand. No sealed data. */

import { readQueue } from './capacity.js'
import { jobKey, queueKey } from './keys.js'
import type { RedisConnection } from './redis/connect.js'
import { liveWorkers, type WorkerCapacity } from './wire/capacity.js'
import { isJobData } from './wire/job.js'

/** The highest age of a report: many readers cost Redis no more than one. */
const FRESH_FOR_MS = 500
/** How far back failed jobs are reported, in milliseconds. */
const RECENT_MS = 60_000
/** Spillway's own reasons are shorter. */
const REASON_MAX_LENGTH = 80

export interface QueueReport {
  /** Jobs by state; see order.ts. Finished jobs only while they are kept. */
  jobs: { open: number; ticketed: number; active: number; completed: number; failed: number }
  paused: boolean
  /** How long the next open job and the next ticketed job have waited; 0 if no such job waits. */
  oldestMs: { open: number; ticketed: number }
  workers: ({ id: string } & WorkerCapacity)[]
  /** Jobs that failed in the last minute, and the last reason: an untrusted text from Redis. */
  failedLately: { count: number; reason: string }
}

export class QueueReporter {
  readonly #redis: RedisConnection
  readonly #prefix: string
  #report: Promise<QueueReport> | undefined
  #askedAt = Number.NEGATIVE_INFINITY

  constructor(redis: RedisConnection, prefix: string) {
    this.#redis = redis
    this.#prefix = prefix
  }

  /** Rejects when Redis does not answer. */
  read(): Promise<QueueReport> {
    if (this.#report === undefined || performance.now() - this.#askedAt > FRESH_FOR_MS) {
      this.#askedAt = performance.now()
      this.#report = this.#ask()
    }
    return this.#report
  }

  async #ask(): Promise<QueueReport> {
    const keyOf = (part: Parameters<typeof queueKey>[1]) => queueKey(this.#prefix, part)
    const redis = this.#redis
    const [queue, completed, failed, count, [lastFailed], nextOpen, [nextTicketed]] = await Promise.all([
      readQueue(redis, this.#prefix, Date.now()),
      redis.zcard(keyOf('completed')),
      redis.zcard(keyOf('failed')),
      redis.zcount(keyOf('failed'), Date.now() - RECENT_MS, '+inf'),
      redis.zrevrange(keyOf('failed'), 0, 0),
      redis.lindex(keyOf('wait'), -1),
      redis.zrange(keyOf('prioritized'), '0', '0'),
    ])
    const { at, paused, open, line, active, workers } = queue
    const reason = count === 0 ? '' : await this.#field(lastFailed, 'failedReason')
    return {
      jobs: { open, ticketed: line, active, completed, failed },
      paused,
      oldestMs: { open: await this.#ageMs(nextOpen, at), ticketed: await this.#ageMs(nextTicketed, at) },
      workers: [...liveWorkers(workers, at)].map(([id, capacity]) => ({ id, ...capacity })),
      failedLately: { count, reason: reason.slice(0, REASON_MAX_LENGTH) },
    }
  }

  /** How long a job has waited, in milliseconds; 0 without a job of Spillway's. */
  async #ageMs(id: string | null | undefined, now: number): Promise<number> {
    const json = await this.#field(id, 'data')
    try {
      const data: unknown = JSON.parse(json)
      return isJobData(data) ? Math.max(0, now - data.enqueuedAt) : 0
    } catch {
      return 0
    }
  }

  async #field(id: string | null | undefined, name: string): Promise<string> {
    if (!id) return ''
    return (await this.#redis.hget(jobKey(this.#prefix, id), name).catch(() => null)) ?? ''
  }
}
