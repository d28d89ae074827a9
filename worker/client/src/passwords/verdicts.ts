/** Verdicts in Redis. A verdict counts only if it opens for its job; anything else is treated as missing. */
import type { Logger } from '../logger.js'
import { isVerdict, type Verdict } from '../protocol/job.js'
import { type JobRef, redeemerKey, verdictKey, verdictSeal } from '../protocol/reply.js'
import { type Keyring, SealError } from '../protocol/seal.js'
import type { RedisConnection } from '../redis/connect.js'
import { UnexpectedReply } from '../redis/unexpected-reply.js'

export interface Verdicts {
  /** Opens a verdict that was announced or stored. */
  open(job: JobRef, sealed: string): Verdict | undefined
  /** The stored value of a job, still sealed. */
  read(job: JobRef): Promise<string | undefined>
  /** Has the verdict of another gateway's job announced to `replyTo` too. Returns the value stored already, still sealed. */
  follow(job: JobRef, replyTo: string, forMs: number): Promise<string | undefined>
}

export function createVerdicts(options: {
  redis: RedisConnection
  prefix: string
  keyring: Keyring
  log: Logger
  /** Called for each verdict that did not open. */
  broken(): void
}): Verdicts {
  const { redis, prefix, keyring, log } = options

  function broken(job: JobRef): undefined {
    options.broken()
    log.error({ jobId: job.id }, 'a verdict did not open: forged, swapped or damaged')
  }

  function open(job: JobRef, sealed: string): Verdict | undefined {
    try {
      const verdict = keyring.open(verdictSeal(job), sealed)
      return isVerdict(verdict) ? verdict : broken(job)
    } catch (error) {
      if (error instanceof SealError) return broken(job)
      throw error
    }
  }

  async function read(job: JobRef): Promise<string | undefined> {
    try {
      const stored: unknown = await redis.get(verdictKey(prefix, job.id))
      if (stored === null || stored === undefined) return undefined
      if (typeof stored === 'string') return stored
      throw new UnexpectedReply('Redis gave no text where a verdict is stored')
    } catch (error) {
      // Workers store strings alone: a key of another type was forged.
      if (error instanceof Error && error.message.startsWith('WRONGTYPE')) return broken(job)
      throw error
    }
  }

  return {
    open,
    read,
    async follow(job, replyTo, forMs) {
      // Sent together and run in this order: a verdict that is stored in between is announced here or found by the read.
      const [, stored] = await Promise.all([
        redis.set(redeemerKey(prefix, job.id), replyTo, 'PX', Math.max(1, forMs)),
        read(job),
      ])
      return stored
    },
  }
}
