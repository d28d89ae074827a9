/**
 * The door for every other process: passwords go in sealed, verdicts come out opened. Loads no hashing code.
 *
 * A job is added after its waiter is registered, on a channel that was subscribed to at start, so that no answer can come
 * too early. A message can be lost with a connection: when that is back, every second, and at the end of a wait, the stored
 * verdict is asked for.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Queue, type Telemetry } from 'bullmq'
import { bringAlong } from './ageing.js'
import { createCancellation } from './cancellation.js'
import { createRedisClock } from './clock.js'
import { PasswordClientError } from './errors.js'
import { readLoad } from './load.js'
import type { Logger } from './log.js'
import type { Load } from './protocol/capacity.js'
import {
  DEFAULT_QUEUE_PREFIX,
  DEFERRED_PRIORITY,
  type HashRequest,
  type JobData,
  type JobName,
  type Lane,
  QUEUE_NAME,
  type VerifyRequest,
} from './protocol/job.js'
import { decodeReply, type JobRef, replyChannel, requestSeal } from './protocol/reply.js'
import type { Keyring } from './protocol/seal.js'
import { connectRedis, type RedisConnection } from './redis.js'
import { type Answer, createVerdicts } from './verdicts.js'
import { createWaiters, type Waiter } from './waiters.js'
import { within } from './within.js'

export { type ClientErrorCode, PasswordClientError } from './errors.js'
export type { Load } from './protocol/capacity.js'
export type { Lane, RefusalCode, Verdict } from './protocol/job.js'
export { DEFAULT_QUEUE_PREFIX } from './protocol/job.js'
export type { JobRef } from './protocol/reply.js'
export { type Keyring, parseKeyring, SealError } from './protocol/seal.js'
export { connectRedis, type RedisConnection } from './redis.js'
export type { Answer } from './verdicts.js'

/** How a verdict got here: announced, or found by asking although it should have been announced. */
export type VerdictSource = 'message' | 'asked'

/** Told of what is worth counting. */
export interface ClientObserver {
  verdictReceived(source: VerdictSource): void
  verdictBroken(): void
  jobAddedAgain(): void
}

/** How often verdicts are asked for although none was announced: a message may be lost without a trace. */
const RECHECK_INTERVAL_MS = 1_000
const LAST_LOOK_MS = 500
/** How long a new job waits for a connection that was just lost. */
const RECONNECT_PATIENCE_MS = 500
const RECONNECT_POLL_MS = 25

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
   * Throws `wait_aborted` when the signal fires.
   */
  answer(options: { waitMs: number; signal: AbortSignal }): Promise<Answer | undefined>
}

export interface PasswordClient {
  /** Adds a job, to the held ones unless it is said to be deferred. Throws `queue_unavailable` when Redis does not take it. */
  submit(name: 'hash', request: HashRequest, lane?: Lane): Promise<PendingJob>
  submit(name: 'verify', request: VerifyRequest, lane?: Lane): Promise<PendingJob>
  /** Waits on for a job that this or another gateway added. Throws `queue_unavailable` when Redis does not answer. */
  resume(job: JobRef): Promise<PendingJob>
  /** Takes back a job that no one waits for any more, now or as soon as Redis answers. True when it had not begun. */
  cancel(job: JobRef): Promise<boolean>
  /** Marks a verdict as used, so that its ticket answers only once. Throws `queue_unavailable`. */
  retire(job: JobRef): Promise<void>
  /** Resolves once the queue has been read, or after this time in vain. */
  whenKnown(waitMs: number): Promise<void>
  /** The queue as last read, a quarter of a second ago at most. */
  load(): Load
  /** Milliseconds until a job added now would be answered; Infinity when no worker is alive. */
  predictedWaitMs(lane?: Lane): number
  /** Epoch milliseconds by Redis's clock, which deadlines are counted on. */
  now(): number
  isReady(): boolean
  close(): Promise<void>
}

export function createPasswordClient(options: PasswordClientOptions): PasswordClient {
  const { keyring, log, observer, prefix = DEFAULT_QUEUE_PREFIX } = options
  const replyTo = randomUUID()
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
  const verdicts = createVerdicts({ redis, prefix, keyring, log, broken: () => observer?.verdictBroken() })
  const cancellation = createCancellation({ redis, prefix, clock })

  subscriber.on('message', (_channel: string, message: string) => {
    const reply = decodeReply(message)
    const waiter = reply && waiters.get(reply.jobId)
    const answer = waiter && verdicts.open(waiter.job, reply?.sealed)
    if (waiter !== undefined && answer !== undefined) settle(waiter.job, answer, 'message')
  })
  let subscribed = false
  subscriber.on('ready', () => void subscribe())
  redis.on('ready', () => void recheck({ addMissing: true }))

  const timer = setInterval(() => {
    void recheck()
    // Asked now and then, a connection that nobody closed but nothing comes over any more is noticed.
    if (subscriber.status === 'ready') subscriber.ping().catch(() => undefined)
  }, RECHECK_INTERVAL_MS)

  /** Looks for what was missed once Redis has confirmed the subscription: what was announced before that was not heard. */
  async function subscribe(): Promise<void> {
    try {
      await subscriber.subscribe(replyChannel(prefix, replyTo))
      subscribed = true
    } catch (error) {
      log.error({ err: error }, 'replies cannot be subscribed to')
    }
    await recheck({ addMissing: true })
  }

  function settle(job: JobRef, answer: Answer, source: VerdictSource): void {
    observer?.verdictReceived(source)
    waiters.settle(job.id, answer)
  }

  /** Takes the verdicts that were not heard; after a lost connection, also adds the jobs again that Redis lost. */
  async function recheck({ addMissing = false } = {}): Promise<void> {
    const waiting = waiters.all()
    if (waiting.length === 0 || redis.status !== 'ready') return
    try {
      const answers = await verdicts.read(waiting.map(({ job }) => job))
      const missing = waiting.filter(({ job }, index) => {
        const answer = answers[index]
        if (answer !== undefined) settle(job, answer, 'asked')
        return answer === undefined
      })
      if (addMissing) await Promise.all(missing.map(addAgain))
    } catch (error) {
      log.warn({ err: error }, 'verdicts could not be asked for')
    }
  }

  /** A job that is still there keeps its place: its id is taken. */
  async function addAgain({ job, data }: Waiter): Promise<void> {
    if (data === undefined) return
    await add(job, data, 'held')
    observer?.jobAddedAgain()
  }

  async function add(job: JobRef, data: JobData, lane: Lane): Promise<void> {
    const priority = lane === 'deferred' ? { priority: DEFERRED_PRIORITY } : {}
    await reached(queue.add(job.name, data, { jobId: job.id, ...priority }), 'the job could not be added')
  }

  /** A connection that is being replaced is waited for, once, so that a cut of a moment is noticed by nobody. */
  async function addWhenBack(job: JobRef, data: JobData, lane: Lane): Promise<void> {
    try {
      await add(job, data, lane)
    } catch (error) {
      if (redis.status === 'ready' || !(await isReadyWithin(RECONNECT_PATIENCE_MS))) throw error
      await add(job, data, lane)
    }
  }

  async function isReadyWithin(patienceMs: number): Promise<boolean> {
    for (const end = performance.now() + patienceMs; performance.now() < end; await sleep(RECONNECT_POLL_MS)) {
      if (redis.status === 'ready') return true
    }
    return false
  }

  /** Nobody waits for this: where it fails, the next one does it. */
  function overtook(): void {
    bringAlong(redis, prefix).catch((error: unknown) => log.debug({ err: error }, 'no deferred job was brought along'))
  }

  /** The verdict that came at the last moment or was not heard. Not for long: the wait is over. */
  async function lastLook(job: JobRef): Promise<Answer | undefined> {
    const [answer] = (await within(LAST_LOOK_MS, verdicts.read([job])).catch(() => undefined)) ?? []
    return answer
  }

  function pending(job: JobRef, waiter: Waiter): PendingJob {
    return {
      job,
      async answer({ waitMs, signal }) {
        try {
          const answer = await firstOf(waiter.answer, waitMs, signal)
          if (answer !== undefined) return answer
          if (signal.aborted) throw new PasswordClientError('wait_aborted', 'the caller went away')
          const late = waitMs === 0 ? undefined : await lastLook(job)
          if (late !== undefined) observer?.verdictReceived('asked')
          return late
        } finally {
          waiters.release(job.id)
        }
      },
    }
  }

  return {
    async submit(name: JobName, request: HashRequest | VerifyRequest, lane: Lane = 'held') {
      const enqueuedAt = clock.now()
      const job: JobRef = { id: randomUUID(), name, deadline: enqueuedAt + options.jobLifeMs }
      const sealed = keyring.seal(requestSeal(job), request)
      const data: JobData = { deadline: job.deadline, enqueuedAt, replyTo, sealed }
      const waiter = waiters.hold(job, data)
      try {
        await addWhenBack(job, data, lane)
      } catch (error) {
        waiters.release(job.id)
        // A command that got no answer may have been carried out.
        void cancellation.cancel(job)
        throw error
      }
      if (lane === 'held' && load.current().deferred > 0) overtook()
      load.added(lane)
      return pending(job, waiter)
    },
    async resume(job) {
      const waiter = waiters.hold(job)
      try {
        const followed = verdicts.follow(job, replyTo, job.deadline - clock.now())
        const answer = await reached(followed, 'the verdict could not be asked for')
        if (answer !== undefined) settle(job, answer, 'message')
        return pending(job, waiter)
      } catch (error) {
        waiters.release(job.id)
        throw error
      }
    },
    cancel: cancellation.cancel,
    retire: (job) => reached(verdicts.retire(job), 'the verdict could not be marked as used'),
    whenKnown: load.whenKnown,
    load: load.current,
    predictedWaitMs: load.predictedWaitMs,
    now: clock.now,
    isReady: () => redis.status === 'ready' && subscriber.status === 'ready' && subscribed,
    async close() {
      clearInterval(timer)
      load.close()
      cancellation.close()
      await queue.close()
      await Promise.all([quit(redis), quit(subscriber)])
    },
  }
}

/**
 * The answer, or undefined once the time is up or the signal fires. By hand: a race of timers that are aborted costs 0.05 ms of
 * processor time for each login.
 */
function firstOf(answer: Promise<Answer>, waitMs: number, signal: AbortSignal): Promise<Answer | undefined> {
  return new Promise((resolve) => {
    const end = (outcome?: Answer) => {
      clearTimeout(timer)
      signal.removeEventListener('abort', gone)
      resolve(outcome)
    }
    const gone = () => end()
    const timer = setTimeout(end, waitMs)
    signal.addEventListener('abort', gone)
    if (signal.aborted) end()
    void answer.then(end)
  })
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
