/** Verdicts as they lie in Redis. One is believed only after it opened for that very job; anything else is as if it were not there. */
import type { Logger } from '../log.js'
import { isVerdict, type Verdict } from '../protocol/job.js'
import { type JobRef, redeemerKey, USED_VERDICT, verdictKey, verdictSeal } from '../protocol/reply.js'
import { type Keyring, SealError } from '../protocol/seal.js'
import type { RedisConnection } from '../redis.js'

/** A verdict, or word that its ticket has been redeemed already. */
export type Answer = Verdict | 'used'

export interface Verdicts {
  /** Opens what was stored or announced for a job. */
  open(job: JobRef, sealed: string | null | undefined): Answer | undefined
  /** What is stored for a job. */
  read(job: JobRef): Promise<Answer | undefined>
  /** Has the verdict of another gateway's job announced here as well, and returns it if it is there already. */
  follow(job: JobRef, replyTo: string, forMs: number): Promise<Answer | undefined>
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
  const { redis, prefix, keyring, log, broken } = options

  function open(job: JobRef, sealed: string | null | undefined): Answer | undefined {
    if (!sealed) return undefined
    if (sealed === USED_VERDICT) return 'used'
    try {
      const opened = keyring.open(verdictSeal(job), sealed)
      if (isVerdict(opened)) return opened
    } catch (error) {
      if (!(error instanceof SealError)) throw error
    }
    broken()
    log.error({ jobId: job.id }, 'a verdict did not open: forged, swapped or damaged')
    return undefined
  }

  async function read(job: JobRef): Promise<Answer | undefined> {
    return open(job, await redis.get(verdictKey(prefix, job.id)))
  }

  return {
    open,
    read,
    async follow(job, replyTo, forMs) {
      // Sent together, and carried out in this order: a verdict that comes between the two is either announced or found.
      const [, answer] = await Promise.all([
        redis.set(redeemerKey(prefix, job.id), replyTo, 'PX', Math.max(1, forMs)),
        read(job),
      ])
      return answer
    },
    async retire(job) {
      await redis.set(verdictKey(prefix, job.id), USED_VERDICT, 'KEEPTTL', 'XX')
    },
  }
}
