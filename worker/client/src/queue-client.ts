/**
 * The client of the password queue: seals passwords into jobs and opens their verdicts. Loads no hashing code.
 *
 * The reply channel is subscribed to at start, before any job is added. A message can be lost with a connection, and a job with a
 * server: Redis itself is asked when a connection is restored, every second, and at the end of a wait.
 */
import { randomUUID } from 'node:crypto'
import type { Telemetry } from 'bullmq'
import { orQueueUnavailable } from './errors.js'
import type { Logger } from './logger.js'
import { createAnswers, type PendingJob, type VerdictSource } from './passwords/answers.js'
import { createCancellation } from './passwords/cancellation.js'
import { readLoad } from './passwords/load.js'
import { createProducer } from './passwords/producer.js'
import { createRecheck } from './passwords/recheck.js'
import { subscribeToReplies } from './passwords/replies.js'
import { createResume } from './passwords/resume.js'
import { createSubmit, type Submit } from './passwords/submit.js'
import { type Answer, createVerdicts } from './passwords/verdicts.js'
import type { Load } from './protocol/capacity.js'
import { DEFAULT_QUEUE_PREFIX, type Lane } from './protocol/job.js'
import type { JobRef } from './protocol/reply.js'
import type { Keyring } from './protocol/seal.js'
import { createRedisClock } from './redis/clock.js'
import { connectRedis, quitRedis, type RedisConnection } from './redis/connect.js'
import { unrefRedis } from './redis/unref.js'
import { type RedisWatch, watchRedis } from './redis/watch.js'

export { type ClientErrorCode, PasswordClientError } from './errors.js'
export type { PendingJob, VerdictSource } from './passwords/answers.js'
export type { Answer } from './passwords/verdicts.js'
export type { Load } from './protocol/capacity.js'
export type { JobName, Lane, RefusalCode, Requests, Verdict } from './protocol/job.js'
export { DEFAULT_QUEUE_PREFIX } from './protocol/job.js'
export { refuseGuessableKeys } from './protocol/key-list.js'
export type { JobRef } from './protocol/reply.js'
export { type Keyring, parseKeyring, SealError } from './protocol/seal.js'
export { connectRedis, quitRedis, type RedisConnection } from './redis/connect.js'
export { type RedisWatch, watchRedis } from './redis/watch.js'

/** Callbacks for metrics. */
export interface ClientObserver {
  verdictReceived(source: VerdictSource): void
  verdictBroken(): void
  jobAddedAgain(): void
}

/** How often Redis is asked without any sign of a failure: messages and jobs may be lost without a trace. */
const RECHECK_INTERVAL_MS = 1_000

export interface PasswordClientOptions {
  redisUrl: string
  /** The connection for commands, of the role `producer`; it stays the caller's to watch and to close [one of its own]. */
  redis?: RedisConnection
  prefix?: string
  keyring: Keyring
  /** The time from submitting a job to its deadline, in milliseconds: how long it may wait and its verdict can be read. */
  jobLifeMs: number
  log: Logger
  /** Whether this client's connections keep the process alive only while a call waits [false: they always do]. */
  background?: boolean
  /** Logs the failures of this client's connections [a watch of its own]. */
  watch?: RedisWatch
  observer?: ClientObserver
  /** Adds the submission of a job to the active trace. */
  telemetry?: Telemetry
  /** In place of `telemetry`: the W3C trace context to which spans of workers belong. */
  traceparent?: (() => string | undefined) | undefined
}

export interface PasswordClient {
  /**
   * Adds a job to a lane [held] that lives for a whole number of milliseconds [jobLifeMs]. Throws `queue_unavailable` when Redis does
   * not accept it.
   */
  submit: Submit
  /**
   * Waits for a job that this or another gateway added. Throws `held_too_often` when eight requests wait for it here already, and
   * `queue_unavailable` when Redis does not answer.
   */
  resume(job: JobRef): Promise<PendingJob<Answer>>
  /** Removes a job from the queue, now or once Redis answers again. True when it was removed before a worker took it. */
  cancel(job: JobRef): Promise<boolean>
  /** Marks a verdict as used, so that its ticket answers only once. Throws `queue_unavailable`. */
  retire(job: JobRef): Promise<void>
  /** Resolves once the queue has been read, or after this time without success. */
  whenKnown(waitMs: number): Promise<void>
  /** The state of the queue, at most a quarter of a second old. */
  load(): Load
  /** Jobs that workers reported as finished since this process started; never decreases. */
  finishedJobs(): number
  /** Milliseconds until a job added to this lane now would be answered; Infinity when no worker is alive. */
  predictedWaitMs(lane: Lane): number
  /** Epoch milliseconds by Redis's clock, the clock of deadlines. */
  now(): number
  isReady(): boolean
  close(): Promise<void>
}

export function createPasswordClient(options: PasswordClientOptions): PasswordClient {
  const { keyring, jobLifeMs, log, observer, prefix = DEFAULT_QUEUE_PREFIX, watch = watchRedis(log) } = options
  const replyTo = randomUUID()
  const clock = createRedisClock()
  const { redis = connectRedis(options.redisUrl, 'producer') } = options
  if (redis !== options.redis) watch.watch(redis, 'commands')
  const subscriber = connectRedis(options.redisUrl, 'consumer')
  watch.watch(subscriber, 'replies')
  if (options.background) for (const connection of [redis, subscriber]) unrefRedis(connection)

  const verdicts = createVerdicts({ redis, prefix, keyring, log, broken: () => observer?.verdictBroken() })
  const answers = createAnswers(verdicts, (source) => observer?.verdictReceived(source))
  const producer = createProducer({
    ...{ redis, prefix, log, watch },
    telemetry: options.telemetry,
    traceparent: options.traceparent,
  })
  const load = readLoad({ redis, prefix, clock, log })
  const cancellation = createCancellation({ redis, prefix, clock })

  const recheck = createRecheck({
    ...{ redis, prefix, clock, log, answers, producer },
    addedAgain: () => observer?.jobAddedAgain(),
  })
  const replies = subscribeToReplies({
    ...{ subscriber, prefix, replyTo, log },
    received: answers.announced,
    subscribed: recheck,
  })
  redis.on('ready', recheck)
  const timer = setInterval(() => {
    void recheck()
    replies.check()
  }, RECHECK_INTERVAL_MS)
  timer.unref()

  return {
    submit: createSubmit({ redis, keyring, clock, replyTo, jobLifeMs, answers, producer, cancellation, load }),
    resume: createResume({ clock, replyTo, answers, verdicts }),
    cancel: cancellation.cancel,
    retire: (job) => orQueueUnavailable(verdicts.retire(job), 'the verdict could not be marked as used'),
    whenKnown: load.whenKnown,
    load: load.current,
    finishedJobs: load.finishedJobs,
    predictedWaitMs: load.predictedWaitMs,
    now: clock.now,
    isReady: () => redis.status === 'ready' && replies.isSubscribed(),
    async close() {
      clearInterval(timer)
      load.close()
      cancellation.close()
      await producer.close()
      redis.off('ready', recheck)
      await Promise.all([redis === options.redis || quitRedis(redis), quitRedis(subscriber)])
    },
  }
}
