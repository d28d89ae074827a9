/**
 * The door for every other process: passwords go in sealed, verdicts come out opened. Loads no hashing code.
 *
 * A job is added after its waiter is registered, on a channel that was subscribed to at start, so that no answer can come
 * too early. A message can be lost with a connection, and a job with a server: when a connection is back, every second, and
 * at the end of a wait, Redis itself is asked.
 */
import { randomUUID } from 'node:crypto'
import type { Telemetry } from 'bullmq'
import { PasswordClientError } from './errors.js'
import type { Logger } from './logger.js'
import { createCancellation } from './passwords/cancellation.js'
import { readLoad } from './passwords/load.js'
import { createProducer } from './passwords/producer.js'
import { orQueueUnavailable } from './passwords/queue-unavailable.js'
import { createRecheck } from './passwords/recheck.js'
import { hearReplies } from './passwords/replies.js'
import { type Answer, createVerdicts } from './passwords/verdicts.js'
import { createWaiters, type Waiter, type Waiters } from './passwords/waiters.js'
import type { Load } from './protocol/capacity.js'
import {
  DEFAULT_QUEUE_PREFIX,
  type JobData,
  type JobName,
  type Lane,
  padRequest,
  type Requests,
  type Verdict,
} from './protocol/job.js'
import { type JobRef, requestSeal } from './protocol/reply.js'
import type { Keyring } from './protocol/seal.js'
import { createRedisClock } from './redis/clock.js'
import { connectRedis, type RedisConnection } from './redis/connect.js'
import { type RedisWatch, watchRedis } from './redis/watch.js'
import { within } from './within.js'

export { type ClientErrorCode, PasswordClientError } from './errors.js'
export type { Answer } from './passwords/verdicts.js'
export type { Load } from './protocol/capacity.js'
export { refuseGuessableKeys } from './protocol/guessable-key.js'
export type { JobName, Lane, RefusalCode, Requests, Verdict } from './protocol/job.js'
export { DEFAULT_QUEUE_PREFIX } from './protocol/job.js'
export type { JobRef } from './protocol/reply.js'
export { type Keyring, parseKeyring, SealError } from './protocol/seal.js'
export { connectRedis, type RedisConnection } from './redis/connect.js'
export { type RedisWatch, watchRedis } from './redis/watch.js'

/** How a verdict got here: announced, or found by asking although it should have been announced. */
export type VerdictSource = 'message' | 'asked'

/** Told of what is worth counting. */
export interface ClientObserver {
  verdictReceived(source: VerdictSource): void
  verdictBroken(): void
  jobAddedAgain(): void
}

/** How often Redis is asked although nothing seems to be wrong: messages and jobs may be lost without a trace. */
const RECHECK_INTERVAL_MS = 1_000
const LAST_LOOK_MS = 500
/** How many may wait for the same job with its ticket: a client that lost some connections, not one that opens thousands. */
const REDEEMERS_MAX = 8

export interface PasswordClientOptions {
  redisUrl: string
  prefix?: string
  keyring: Keyring
  /** How long a job may wait before it is dropped, and its verdict be asked for, in milliseconds. */
  jobLifeMs: number
  log: Logger
  /** The watch over all connections of this process [one of its own]. */
  watch?: RedisWatch
  observer?: ClientObserver
  /** Makes adding a job part of the trace that is active when it is submitted. */
  telemetry?: Telemetry
}

/** A job that has been added, here or by another gateway. */
export interface PendingJob<A extends Answer = Verdict> {
  readonly job: JobRef
  /**
   * The answer, or undefined when `waitMs` ran out first; the job goes on either way. Call it once for each PendingJob.
   * Throws `wait_aborted` when the signal fires.
   */
  answer(options: { waitMs: number; signal: AbortSignal }): Promise<A | undefined>
}

export interface PasswordClient {
  /** Adds a job, to the held ones unless it is said to be deferred. Throws `queue_unavailable` when Redis does not take it. */
  submit<Name extends JobName>(name: Name, request: Requests[Name], lane?: Lane): Promise<PendingJob>
  /**
   * Waits on for a job that this or another gateway added. Throws `held_too_often` when eight do so here already, and
   * `queue_unavailable` when Redis does not answer.
   */
  resume(job: JobRef): Promise<PendingJob<Answer>>
  /** Takes back a job that no one waits for any more, now or as soon as Redis answers. True when it had not begun. */
  cancel(job: JobRef): Promise<boolean>
  /** Marks a verdict as used, so that its ticket answers only once. Throws `queue_unavailable`. */
  retire(job: JobRef): Promise<void>
  /** Resolves once the queue has been read, or after this time in vain. */
  whenKnown(waitMs: number): Promise<void>
  /** The queue as last read, a quarter of a second ago at most. */
  load(): Load
  /** Jobs that workers said they ended, since this gateway started: it only grows. */
  finishedJobs(): number
  /** Milliseconds until a job added to this lane now would be answered; Infinity when no worker is alive. */
  predictedWaitMs(lane: Lane): number
  /** Epoch milliseconds by Redis's clock, which deadlines are counted on. */
  now(): number
  isReady(): boolean
  close(): Promise<void>
}

export function createPasswordClient(options: PasswordClientOptions): PasswordClient {
  const { keyring, log, observer, prefix = DEFAULT_QUEUE_PREFIX, watch = watchRedis(log) } = options
  const replyTo = randomUUID()
  const clock = createRedisClock()
  const submitted = createWaiters<Verdict>()
  const redeeming = createWaiters<Answer>()

  const redis = connectRedis(options.redisUrl, 'producer')
  const subscriber = connectRedis(options.redisUrl, 'consumer')
  watch.watch(redis, 'commands')
  watch.watch(subscriber, 'replies')
  const producer = createProducer({ redis, prefix, log, watch, telemetry: options.telemetry })
  const load = readLoad({ redis, prefix, clock, log })
  const verdicts = createVerdicts({ redis, prefix, keyring, log, broken: () => observer?.verdictBroken() })
  const cancellation = createCancellation({ redis, prefix, clock })

  const recheck = createRecheck({
    redis,
    prefix,
    clock,
    log,
    submitted,
    redeeming,
    producer,
    found({ jobId, sealed }) {
      offer(submitted, jobId, (job) => verdicts.open(job, sealed), 'asked')
      offer(redeeming, jobId, (job) => verdicts.openForTicket(job, sealed), 'asked')
    },
    addedAgain: () => observer?.jobAddedAgain(),
  })
  const replies = hearReplies({
    subscriber,
    prefix,
    replyTo,
    log,
    received({ jobId, sealed }) {
      offer(submitted, jobId, (job) => verdicts.open(job, sealed), 'message')
      offer(redeeming, jobId, (job) => verdicts.open(job, sealed), 'message')
    },
    subscribed: recheck,
  })
  redis.on('ready', recheck)

  const timer = setInterval(() => {
    void recheck()
    replies.check()
  }, RECHECK_INTERVAL_MS)

  /** Settles who waits for this job, if anyone does and what came opens. */
  function offer<A extends Answer>(
    waiters: Waiters<A>,
    jobId: string,
    open: (job: JobRef) => A | undefined,
    source: VerdictSource,
  ): void {
    const waiter = waiters.get(jobId)
    const answer = waiter && open(waiter.job)
    if (answer === undefined) return
    observer?.verdictReceived(source)
    waiters.settle(jobId, answer)
  }

  /** The verdict that came at the last moment or was not heard. Not for long: the wait is over. */
  async function lastLook(job: JobRef): Promise<string | undefined> {
    return await within(LAST_LOOK_MS, verdicts.read(job)).catch(() => undefined)
  }

  function pending<A extends Answer>(
    waiters: Waiters<A>,
    { job, answer: answered }: Waiter<A>,
    open: (job: JobRef, sealed: string) => A | undefined,
  ): PendingJob<A> {
    return {
      job,
      async answer({ waitMs, signal }) {
        try {
          const answer = await within(waitMs, answered, signal)
          if (answer !== undefined) return answer
          if (signal.aborted) throw new PasswordClientError('wait_aborted', 'the caller went away')
          const stored = waitMs === 0 ? undefined : await lastLook(job)
          const late = stored === undefined ? undefined : open(job, stored)
          if (late !== undefined) observer?.verdictReceived('asked')
          return late
        } finally {
          waiters.release(job.id)
        }
      },
    }
  }

  return {
    async submit(name, request, lane = 'held') {
      // Before there is anything to take back: in an outage nothing is sent, for any number of logins. Otherwise not even for a
      // moment: a trace that is active is so until the first wait.
      if (redis.status !== 'ready') await producer.connected()
      const enqueuedAt = clock.now()
      const job: JobRef = { id: randomUUID(), name, deadline: enqueuedAt + options.jobLifeMs }
      const sealed = keyring.seal(requestSeal(job), padRequest(request))
      const data: JobData = { deadline: job.deadline, enqueuedAt, replyTo, sealed }
      const waiter = submitted.hold(job)
      try {
        await producer.addDespiteCut(job, data, lane)
        submitted.added(job.id, data)
      } catch (error) {
        submitted.release(job.id)
        // A command that got no answer may have been carried out.
        void cancellation.cancel(job)
        throw error
      }
      if (lane === 'held' && load.current().deferred > 0) producer.promoteOldestDeferred()
      load.added(lane)
      return pending(submitted, waiter, verdicts.open)
    },
    async resume(job) {
      if (redeeming.holders(job.id) >= REDEEMERS_MAX)
        throw new PasswordClientError('held_too_often', 'enough connections wait for this job already')
      const waiter = redeeming.hold(job)
      try {
        const followed = verdicts.follow(job, replyTo, job.deadline - clock.now())
        const stored = await orQueueUnavailable(followed, 'the verdict could not be asked for')
        if (stored !== undefined) offer(redeeming, job.id, () => verdicts.openForTicket(job, stored), 'message')
        return pending(redeeming, waiter, verdicts.openForTicket)
      } catch (error) {
        redeeming.release(job.id)
        throw error
      }
    },
    cancel: cancellation.cancel,
    retire: (job) => orQueueUnavailable(verdicts.retire(job), 'the verdict could not be marked as used'),
    whenKnown: load.whenKnown,
    load: load.current,
    finishedJobs: load.finishedJobs,
    predictedWaitMs: load.predictedWaitMs,
    now: clock.now,
    isReady: () => redis.status === 'ready' && replies.isHearing(),
    async close() {
      clearInterval(timer)
      load.close()
      cancellation.close()
      await producer.close()
      await Promise.all([quit(redis), quit(subscriber)])
    },
  }
}

/** Ends a connection politely where it is open, and at once where it is not. */
async function quit(connection: RedisConnection): Promise<void> {
  if (connection.status === 'ready') await connection.quit().catch(() => undefined)
  connection.disconnect()
}
