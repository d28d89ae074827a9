/**
 * The door for every other process: passwords go in sealed, verdicts come out opened. Loads no hashing code.
 *
 * A job is added after its waiter is registered, on a channel that was subscribed to at start, so that no answer can come
 * too early. A message that is lost all the same is made up for by {@link recheck}: the stored verdict is what counts.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Queue, type Telemetry } from 'bullmq'
import { createRedisClock } from './clock.js'
import { PasswordClientError } from './errors.js'
import { readLoad } from './load.js'
import type { Logger } from './log.js'
import type { Load } from './protocol/capacity.js'
import {
  DEFAULT_QUEUE_PREFIX,
  type HashRequest,
  type JobData,
  type JobName,
  QUEUE_NAME,
  type VerifyRequest,
  verdict,
} from './protocol/job.js'
import {
  decodeReply,
  type JobRef,
  replyChannel,
  requestSeal,
  USED_VERDICT,
  verdictKey,
  verdictSeal,
} from './protocol/reply.js'
import { type Keyring, SealError } from './protocol/seal.js'
import { connectRedis, type RedisConnection } from './redis.js'
import { takeBack } from './take-back.js'
import { type Answer, createWaiters, type Waiter } from './waiters.js'

export { type ClientErrorCode, PasswordClientError } from './errors.js'
export type { Load } from './protocol/capacity.js'
export type { RefusalCode, Verdict } from './protocol/job.js'
export { DEFAULT_QUEUE_PREFIX } from './protocol/job.js'
export type { JobRef } from './protocol/reply.js'
export { type Keyring, parseKeyring, SealError } from './protocol/seal.js'
export { connectRedis, type RedisConnection } from './redis.js'
export type { Answer } from './waiters.js'

/** How often a job of another gateway, redeemed here, is asked for: its verdict is announced elsewhere. */
const FOREIGN_RECHECK_MS = 100
/** How often this gateway's own jobs are asked for, in case a message was lost. */
const OWN_RECHECK_MS = 1_000

/** How a verdict got here: announced; found by asking, although it should have been announced; or announced elsewhere. */
export type VerdictSource = 'message' | 'fallback' | 'other_gateway'

/** Told of what is worth counting. */
export interface ClientObserver {
  verdictReceived(source: VerdictSource): void
  verdictBroken(): void
  jobAddedAgain(): void
}

export interface PasswordClientOptions {
  redisUrl: string
  prefix?: string
  keyring: Keyring
  /** How long a job may wait before it is dropped, and its verdict be asked for, in milliseconds. */
  jobLifeMs: number
  log: Logger
  observer?: ClientObserver
  /** Makes adding a job part of the trace that is active. */
  telemetry?: Telemetry
}

/** A job that has been added, here or by another gateway. */
export interface PendingJob {
  readonly job: JobRef
  /**
   * The answer, or undefined when `waitMs` ran out first; the job goes on either way. Call it once for each PendingJob.
   * Throws `wait_aborted` when the signal fires, `queue_unavailable` when Redis cannot be asked.
   */
  answer(options: { waitMs: number; signal: AbortSignal }): Promise<Answer | undefined>
}

export interface PasswordClient {
  /** Adds a job. Throws `queue_unavailable` when Redis does not take it. */
  submit(name: 'hash', request: HashRequest): Promise<PendingJob>
  submit(name: 'verify', request: VerifyRequest): Promise<PendingJob>
  /** Waits on for a job that this or another gateway added. */
  resume(job: JobRef): PendingJob
  /** Takes back a job that no one waits for any more. True when it had not begun. Throws `queue_unavailable`. */
  cancel(job: JobRef): Promise<boolean>
  /** Marks a verdict as used, so that its ticket answers only once. Throws `queue_unavailable`. */
  retire(job: JobRef): Promise<void>
  /** The queue as last read, a quarter of a second ago at most. */
  load(): Load
  /** Milliseconds until a job added now would be answered; Infinity when no worker is alive. */
  predictedWaitMs(): number
  /** Epoch milliseconds by Redis's clock, which deadlines are counted on. */
  now(): number
  isReady(): boolean
  close(): Promise<void>
}

export function createPasswordClient(options: PasswordClientOptions): PasswordClient {
  const { keyring, log, observer, prefix = DEFAULT_QUEUE_PREFIX } = options
  const replyTo = randomUUID()
  const channel = replyChannel(prefix, replyTo)
  const clock = createRedisClock()
  const waiters = createWaiters()

  const redis = connectRedis(options.redisUrl, 'producer')
  const subscriber = connectRedis(options.redisUrl, 'consumer')
  for (const [connection, role] of [
    [redis, 'commands'],
    [subscriber, 'replies'],
  ] as const) {
    connection.on('error', (error) => log.warn({ err: error, connection: role }, 'redis connection failed'))
  }
  const queue = new Queue(QUEUE_NAME, {
    connection: redis,
    prefix,
    // Nothing is asked of Redis before the first job: it may be away when a gateway starts, and come later.
    skipWaitingForReady: true,
    skipVersionCheck: true,
    skipMetasUpdate: true,
    ...(options.telemetry ? { telemetry: options.telemetry } : {}),
  })
  queue.on('error', (error) => log.warn({ err: error }, 'queue error'))
  const load = readLoad({ redis, prefix, clock, log })

  subscriber.on('message', (_channel: string, message: string) => {
    const reply = decodeReply(message)
    const waiter = reply && waiters.get(reply.jobId)
    if (waiter !== undefined) settle(waiter, reply?.sealed, 'message')
  })
  subscriber.subscribe(channel).catch((error: unknown) => log.error({ err: error }, 'replies cannot be subscribed to'))
  // Whichever of the two comes back last finds the other one ready.
  for (const connection of [redis, subscriber])
    connection.on('ready', () => void recheck(waiters.all(), { addMissing: true }))

  const timers = [
    setInterval(() => void recheck(waiters.all().filter((waiter) => waiter.data === undefined)), FOREIGN_RECHECK_MS),
    setInterval(() => void recheck(waiters.all()), OWN_RECHECK_MS),
  ]

  /** Takes a stored or announced verdict for true when it opens for this job; anything else is as if it were not there. */
  function open(job: JobRef, sealed: string): Answer | undefined {
    if (sealed === USED_VERDICT) return 'used'
    try {
      const opened = keyring.open(verdictSeal(job), sealed)
      if (verdict.Check(opened)) return opened
    } catch (error) {
      if (!(error instanceof SealError)) throw error
    }
    observer?.verdictBroken()
    log.error({ jobId: job.id }, 'a verdict did not open: forged, swapped or damaged')
    return undefined
  }

  function settle({ job }: Waiter, sealed: string | null | undefined, source: VerdictSource): boolean {
    const answer = sealed ? open(job, sealed) : undefined
    if (answer === undefined) return false
    observer?.verdictReceived(source)
    waiters.settle(job.id, answer)
    return true
  }

  function sourceByAsking({ data }: Waiter): VerdictSource {
    return data === undefined ? 'other_gateway' : 'fallback'
  }

  /** Asks for the verdicts themselves. After a reconnect, jobs that Redis lost are added again: their id makes that harmless. */
  async function recheck(waiting: Waiter[], { addMissing = false } = {}): Promise<void> {
    if (waiting.length === 0 || redis.status !== 'ready') return
    try {
      const verdicts = await redis.mget(waiting.map(({ job }) => verdictKey(prefix, job.id)))
      const missing = waiting.filter((waiter, index) => !settle(waiter, verdicts[index], sourceByAsking(waiter)))
      if (addMissing) await Promise.all(missing.map(addAgain))
    } catch (error) {
      log.warn({ err: error }, 'verdicts could not be asked for')
    }
  }

  async function addAgain({ job, data }: Waiter): Promise<void> {
    if (data === undefined) return
    await add(job, data)
    observer?.jobAddedAgain()
  }

  async function add(job: JobRef, data: JobData): Promise<void> {
    await reached(queue.add(job.name, data, { jobId: job.id }), 'the job could not be added')
  }

  function pending(job: JobRef, waiter: Waiter): PendingJob {
    return {
      job,
      async answer({ waitMs, signal }) {
        const elapsed = new AbortController()
        try {
          if (waiter.data === undefined) await recheck([waiter])
          const answer = await Promise.race([
            waiter.answer,
            sleep(waitMs, undefined, { signal: AbortSignal.any([signal, elapsed.signal]) }).catch(() => undefined),
          ])
          if (answer !== undefined) return answer
          if (signal.aborted) throw new PasswordClientError('wait_aborted', 'the caller went away')
          const stored = await reached(redis.get(verdictKey(prefix, job.id)), 'the verdict could not be asked for')
          const late = stored === null ? undefined : open(job, stored)
          if (late !== undefined) observer?.verdictReceived(sourceByAsking(waiter))
          return late
        } finally {
          elapsed.abort()
          waiters.release(job.id)
        }
      },
    }
  }

  return {
    async submit(name: JobName, request: HashRequest | VerifyRequest) {
      const enqueuedAt = clock.now()
      const job: JobRef = { id: randomUUID(), name, deadline: enqueuedAt + options.jobLifeMs }
      const data: JobData = {
        deadline: job.deadline,
        enqueuedAt,
        replyTo,
        sealed: keyring.seal(requestSeal(job), request),
      }
      const waiter = waiters.hold(job, data)
      try {
        await add(job, data)
      } catch (error) {
        waiters.release(job.id)
        throw error
      }
      load.added()
      return pending(job, waiter)
    },
    resume: (job) => pending(job, waiters.hold(job)),
    cancel: (job) => reached(takeBack(redis, prefix, job.id), 'the job could not be taken back'),
    async retire(job) {
      const used = redis.set(verdictKey(prefix, job.id), USED_VERDICT, 'KEEPTTL', 'XX')
      await reached(used, 'the verdict could not be marked as used')
    },
    load: load.current,
    predictedWaitMs: load.predictedWaitMs,
    now: clock.now,
    isReady: () => redis.status === 'ready' && subscriber.status === 'ready',
    async close() {
      for (const timer of timers) clearInterval(timer)
      load.close()
      await queue.close()
      await Promise.all([quit(redis), quit(subscriber)])
    },
  }
}

/** What Redis answers; when it does not, an error under the one code for that. */
async function reached<T>(answer: Promise<T>, failure: string): Promise<T> {
  try {
    return await answer
  } catch (error) {
    throw new PasswordClientError('queue_unavailable', failure, { cause: error })
  }
}

/** Ends a connection politely where it is open, and at once where it is not. */
async function quit(connection: RedisConnection): Promise<void> {
  if (connection.status === 'ready') await connection.quit().catch(() => undefined)
  connection.disconnect()
}
