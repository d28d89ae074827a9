/** Verdicts as they lie in Redis. One is believed only after it opened for that very job; anything else is as if it were not there. */
import type { Logger } from '../logger.js'
import { isVerdict, type Verdict } from '../protocol/job.js'
import { type JobRef, redeemerKey, usedSeal, verdictKey, verdictSeal } from '../protocol/reply.js'
import { type Keyring, type SealContext, SealError } from '../protocol/seal.js'
import type { RedisConnection } from '../redis/connect.js'

/** A verdict, or word that its ticket has been redeemed already. */
export type Answer = Verdict | 'used'

export interface Verdicts {
  /** Opens what was announced to anyone, or stored for a job that no ticket was given for. */
  open(job: JobRef, sealed: string): Verdict | undefined
  /** Opens what is stored for a job whose ticket is being redeemed: that it has been already is believed of nothing else. */
  openForTicket(job: JobRef, sealed: string): Answer | undefined
  /** What is stored for a job, still sealed. */
  read(job: JobRef): Promise<string | undefined>
  /** Has the verdict of another gateway's job announced here as well, and returns what is stored of it already, still sealed. */
  follow(job: JobRef, replyTo: string, forMs: number): Promise<string | undefined>
  /** Marks a verdict as used, so that its ticket answers only once. */
  retire(job: JobRef): Promise<void>
}

export function createVerdicts(options: {
  redis: RedisConnection
  prefix: string
  keyring: Keyring
  log: Logger
  /** Told of each that did not open. */
  broken(): void
}): Verdicts {
  const { redis, prefix, keyring, log } = options

  function broken(job: JobRef): undefined {
    options.broken()
    log.error({ jobId: job.id }, 'a verdict did not open: forged, swapped or damaged')
  }

  function unsealed(context: SealContext, sealed: string): unknown {
    try {
      return keyring.open(context, sealed)
    } catch (error) {
      if (error instanceof SealError) return undefined
      throw error
    }
  }

  function open(job: JobRef, sealed: string): Verdict | undefined {
    const verdict = unsealed(verdictSeal(job), sealed)
    return isVerdict(verdict) ? verdict : broken(job)
  }

  async function read(job: JobRef): Promise<string | undefined> {
    try {
      return (await redis.get(verdictKey(prefix, job.id))) ?? undefined
    } catch (error) {
      // Of another type than any that a worker stores.
      if (error instanceof Error && error.message.startsWith('WRONGTYPE')) return broken(job)
      throw error
    }
  }

  return {
    open,
    openForTicket: (job, sealed) => (unsealed(usedSeal(job), sealed) === undefined ? open(job, sealed) : 'used'),
    read,
    async follow(job, replyTo, forMs) {
      // Sent together, and carried out in this order: a verdict that comes between the two is either announced or found.
      const [, stored] = await Promise.all([
        redis.set(redeemerKey(prefix, job.id), replyTo, 'PX', Math.max(1, forMs)),
        read(job),
      ])
      return stored
    },
    async retire(job) {
      await redis.set(verdictKey(prefix, job.id), keyring.seal(usedSeal(job), {}), 'KEEPTTL', 'XX')
    },
  }
}
