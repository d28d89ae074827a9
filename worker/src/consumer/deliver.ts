/** Delivers verdicts: stores each until its job's deadline, and announces it. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '@spillway/common/log'
import { setAside, storeVerdict } from '@spillway/queue/jobs/ticket'
import type { RedisClock } from '@spillway/queue/redis/clock'
import type { RedisConnection } from '@spillway/queue/redis/connect'
import { type JobRef, verdictKey } from '@spillway/queue/wire/reply'

const RETRY_MS = 200

interface DeliveryOptions {
  redis: RedisConnection
  prefix: string
  clock: RedisClock
  log: Logger
}

export class Delivery {
  readonly #options: DeliveryOptions
  readonly #underway = new Set<Promise<void>>()

  constructor(options: DeliveryOptions) {
    this.#options = options
  }

  /**
   * Resolves when Redis has stored the verdict. While Redis refuses it (full, read-only), sends it
   * again until the job's deadline. While Redis is unreachable, the connection queues it.
   */
  deliver(job: JobRef & { replyTo: string }, sealed: string): Promise<void> {
    const delivered = this.#send(job, sealed).finally(() => this.#underway.delete(delivered))
    this.#underway.add(delivered)
    return delivered
  }

  /** Of a verdict `unavailable`. After a failure the job is taken again when its lock expires. */
  async setAside(job: JobRef & { replyTo: string }, token: string, sealed: string): Promise<void> {
    const { redis, prefix } = this.#options
    await setAside(redis, prefix, job, token, sealed).catch(() => undefined)
  }

  /** The stored verdict, which may be forged; undefined without one, or after an error. */
  async stored({ id }: JobRef): Promise<string | undefined> {
    const { redis, prefix } = this.#options
    return (await redis.get(verdictKey(prefix, id)).catch(() => undefined)) ?? undefined
  }

  async settled(): Promise<void> {
    await Promise.allSettled(this.#underway)
  }

  async #send(job: JobRef & { replyTo: string }, sealed: string): Promise<void> {
    const { redis, prefix, clock, log } = this.#options
    const { id, deadline } = job
    for (let attempt = 1; ; attempt += 1) {
      const keepMs = Math.max(1, deadline - clock.now())
      try {
        await storeVerdict(redis, prefix, job, sealed, keepMs)
        return
      } catch (error) {
        if (clock.now() >= deadline) throw error
        if (attempt === 1) log.warn({ jobId: id, err: error }, 'verdict refused by Redis, retrying')
        await sleep(RETRY_MS)
      }
    }
  }
}
