/**
 * Results of jobs, for the requests of this process that wait. Workers announce them on a channel of
 * this process. Announcements may be lost: Redis is read after a reconnect and at the end of a wait.
 */
import { randomUUID } from 'node:crypto'
import { type Logger, ThrottledWarning } from '@spillway/common/throttled-warning'
import { within, withResolvers } from '@spillway/common/within'
import { stateOfJob } from './bullmq.js'
import { PasswordClientError } from './errors.js'
import type { RedisConnection } from './redis/connect.js'
import { isResult, type Result } from './wire/job.js'
import { decodeReply, type JobRef, replyChannel, resultSeal, SKIPPED } from './wire/reply.js'
import { type Keyring, SealError } from './wire/seal.js'

/** Whether a result was announced by its worker, or read in Redis. */
export type ResultSource = 'message' | 'read'

export interface ResultObserver {
  /** Called for each result that a waiting request gets, and for each that does not open. */
  resultReceived(source: ResultSource): void
  resultBroken(): void
}

/** How often the connection is checked: either a PING is answered, or the socket times out. */
const PING_INTERVAL_MS = 2_000
/** Time limit for reading at the end of a wait: a response must not wait for Redis. */
const READ_WITHIN_MS = 500

interface ResultsOptions {
  redis: RedisConnection
  subscriber: RedisConnection
  prefix: string
  keyring: Keyring
  log: Logger
  observer: ResultObserver | undefined
}

export interface Expected {
  readonly job: JobRef
  /**
   * The result; undefined when the time ran out first, or when the job was lost. Throws
   * `wait_aborted` when the signal fires.
   */
  result(waitMs: number, signal?: AbortSignal): Promise<Result | undefined>
  end(): void
}

interface Waiter {
  job: JobRef
  /** Whether a request already waits. Before that, the job may not have been added yet. */
  isAwaited: boolean
  settle(result: Result | undefined): void
}

export class Results {
  /** Where workers announce results: the `replyTo` of jobs. */
  readonly replyTo = randomUUID()
  readonly #options: ResultsOptions
  readonly #waiters = new Map<string, Set<Waiter>>()
  readonly #refused: ThrottledWarning
  readonly #unread: ThrottledWarning
  readonly #timer: NodeJS.Timeout
  #subscription: 'none' | 'requested' | 'confirmed' = 'none'

  constructor(options: ResultsOptions) {
    const { redis, subscriber, log } = options
    this.#options = options
    this.#refused = new ThrottledWarning(log, 'results cannot be subscribed to')
    this.#unread = new ThrottledWarning(log, 'results could not be read')
    subscriber.on('message', (_channel: string, message: string) => {
      const { jobId, sealed } = decodeReply(message)
      if (sealed === SKIPPED) void this.#readAll([jobId])
      else this.#offer(jobId, sealed, 'message')
    })
    subscriber.on('ready', () => void this.#subscribe())
    redis.on('ready', this.#onReady)
    this.#timer = setInterval(() => this.#check(), PING_INTERVAL_MS).unref()
  }

  /** Whether announcements can arrive now. */
  isSubscribed(): boolean {
    return this.#subscription === 'confirmed' && this.#options.subscriber.status === 'ready'
  }

  /** Begins to wait: before the job is added, so that no result can come too early. */
  expect(job: JobRef): Expected {
    const { promise, resolve } = withResolvers<Result | undefined>()
    const waiter: Waiter = { job, isAwaited: false, settle: resolve }
    this.#waiters.set(job.id, (this.#waiters.get(job.id) ?? new Set()).add(waiter))
    const end = () => this.#forget(waiter)
    return {
      job,
      end,
      result: async (waitMs, signal) => {
        waiter.isAwaited = true
        try {
          const result = await within(waitMs, promise, signal)
          if (result !== undefined || waitMs === 0) return result
          if (signal?.aborted) throw new PasswordClientError('wait_aborted', 'the caller went away')
          await within(READ_WITHIN_MS, this.#readAll([job.id]))
          return await within(0, promise)
        } finally {
          end()
        }
      },
    }
  }

  /** Whether a request waits for the result of a job here. */
  isExpected(jobId: string): boolean {
    return this.#waiters.has(jobId)
  }

  /** Opens a result. A result not sealed for this job is logged, counted, and ignored. */
  open(job: JobRef, sealed: string, source: ResultSource): Result | undefined {
    const { keyring, log, observer } = this.#options
    try {
      const result = keyring.open(resultSeal(job), sealed)
      if (isResult(result)) {
        observer?.resultReceived(source)
        return result
      }
    } catch (error) {
      if (!(error instanceof SealError)) throw error
    }
    observer?.resultBroken()
    log.error({ jobId: job.id }, 'a result did not open: forged, swapped or damaged')
    return undefined
  }

  close(): void {
    clearInterval(this.#timer)
    this.#options.redis.off('ready', this.#onReady)
  }

  #offer(jobId: string, sealed: string, source: ResultSource): void {
    const waiters = [...(this.#waiters.get(jobId) ?? [])]
    // A job has one name and deadline, so all waiters open it alike.
    const [first] = waiters
    const result = first && this.open(first.job, sealed, source)
    if (result !== undefined) for (const waiter of waiters) waiter.settle(result)
  }

  #forget(waiter: Waiter): void {
    const waiters = this.#waiters.get(waiter.job.id)
    waiters?.delete(waiter)
    if (waiters?.size === 0) this.#waiters.delete(waiter.job.id)
  }

  #check(): void {
    const { subscriber } = this.#options
    if (subscriber.status !== 'ready') return
    if (this.#subscription === 'confirmed') subscriber.ping().catch(() => undefined)
    else if (this.#subscription === 'none') void this.#subscribe()
  }

  async #subscribe(): Promise<void> {
    const { subscriber, prefix } = this.#options
    this.#subscription = 'requested'
    try {
      await subscriber.subscribe(replyChannel(prefix, this.replyTo))
      this.#subscription = 'confirmed'
      this.#refused.recovered()
    } catch (error) {
      this.#subscription = 'none'
      this.#refused.warn(error)
    }
    // Earlier announcements may have been missed.
    await this.#readAll()
  }

  readonly #onReady = (): void => void this.#readAll()

  /** Reads the states of jobs [all that requests wait for]. Ends waits for jobs that are gone. Never rejects. */
  async #readAll(jobIds: readonly string[] = [...this.#waiters.keys()]): Promise<void> {
    const { redis, prefix } = this.#options
    if (redis.status !== 'ready') return
    const reading = jobIds.map(async (id) => {
      const state = await stateOfJob(redis, prefix, id)
      if (state.kind === 'result') this.#offer(id, state.sealed, 'read')
      else if (state.kind !== 'waiting')
        for (const waiter of this.#waiters.get(id) ?? []) if (waiter.isAwaited) waiter.settle(undefined)
    })
    const failed = (await Promise.allSettled(reading)).find(({ status }) => status === 'rejected')
    if (failed?.status === 'rejected') this.#unread.warn(failed.reason)
  }
}
