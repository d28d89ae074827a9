/**
 * The client of the password queue: gives requests their places, seals them into jobs, and opens
 * their results. Loads no hashing code.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Logger, ThrottledWarning } from '@spillway/common/throttled-warning'
import { within } from '@spillway/common/within'
import type { Queue, Telemetry } from 'bullmq'
import { ReplyError } from 'ioredis'
import { type JobState, openQueue, promote, stateOfJob } from './bullmq.js'
import { FIRST_SCORE } from './capacity.js'
import { orQueueUnavailable, PasswordClientError } from './errors.js'
import { lineKey, probeKey, queueKey } from './keys.js'
import { GRACE_MS, KnownDevices, placeOf, Refusals, type Request } from './order.js'
import { QueueReader } from './queue-reader.js'
import { RedisClock } from './redis/clock.js'
import { connectRedis, quitRedis, type RedisConnection, unrefRedis } from './redis/connect.js'
import { type Eviction, EvictionWatch } from './redis/eviction.js'
import { redisAddress } from './redis/url.js'
import { RedisWatch } from './redis/watch.js'
import { type Expected, type ResultObserver, Results } from './results.js'
import {
  type JobData,
  type JobName,
  padRequest,
  type Requests,
  SEALED_MAX_LENGTH,
  TICKETED_PRIORITY,
} from './wire/job.js'
import { type JobRef, presentKey, requestSeal } from './wire/reply.js'
import type { Keyring } from './wire/seal.js'

export { PasswordClientError } from './errors.js'
export { connectRedis, quitRedis, type RedisConnection } from './redis/connect.js'
export { RedisWatch } from './redis/watch.js'
export type { Expected } from './results.js'
export type { JobName, Requests, Result } from './wire/job.js'
export type { JobRef } from './wire/reply.js'
export { type Keyring, parseKeyring, refuseGuessableKeys } from './wire/seal.js'

export interface PasswordClientOptions {
  redisUrl: string
  /** Reads `redisUrl` again for each new connection [it never changes]. */
  currentRedisUrl?: () => string
  prefix: string
  keyring: Keyring
  log: Logger
  /** Jobs that may wait or be active, however fast the workers are [no limit]. */
  mostWaiting?: number
  /** Whether connections keep the process alive only while a call waits [false: always]. */
  background?: boolean
  /** Logs the failures of this client's connections [a watch of its own]. */
  watch?: RedisWatch
  observer?: ResultObserver
  /** Adds the submission of a job to the active trace. */
  telemetry?: Telemetry
  /** In place of `telemetry`: the W3C trace context to which spans of workers belong. */
  traceparent?: (() => string | undefined) | undefined
}

/** The place of a request. It counts until its job is added, or {@link Admitted.end} is called. */
export interface Admitted {
  place: 'open' | 'ticketed'
  /** Whether its job goes before all others. */
  goesFirst: boolean
  end(): void
  added(): void
}

/** The reason to refuse a request, and the seconds until a retry. */
export interface Refused {
  reason: 'too_many_waiting' | 'predicted_wait'
  retryAfterS: number
}

export interface Submission<Name extends JobName = JobName> {
  job: JobRef & { name: Name }
  request: Requests[Name]
  admitted: Admitted
  /** How long its client is present from now on, in milliseconds. */
  presentMs: number
  /** How long its request is held, in milliseconds [presentMs]. */
  heldMs?: number
  /** The id of the request that needs the job, for log lines and operators. */
  requestId?: string | undefined
}

export interface Submitted extends Expected {
  /** Only a ticketed job has one. */
  readonly number: number | undefined
}

const PROBE_MS = 1_000
const PROBE_WITHIN_MS = 500
/** Numbers of the line start again after a day without one. */
const LINE_KEY_TTL_S = 86_400
/** How long a new job waits for a connection that was just lost. */
const RECONNECT_WAIT_MS = 500
const RECONNECT_POLL_MS = 25

export class PasswordClient {
  /** The address of Redis, for operators: without user and password. */
  readonly address: string
  /** The connection for commands, which fails fast. */
  readonly connection: RedisConnection
  /** Whether Redis may evict keys; undefined before its first answer. */
  readonly eviction: () => Eviction | undefined
  /** The state of the queue, and what is expected of it. */
  readonly estimates: QueueReader
  readonly #options: PasswordClientOptions
  readonly #clock = new RedisClock()
  readonly #subscriber: RedisConnection
  readonly #queue: Queue
  readonly #results: Results
  readonly #knownDevices = new KnownDevices()
  readonly #refusals = new Refusals()
  readonly #notPromoted: ThrottledWarning
  readonly #writeRefused: ThrottledWarning

  constructor(options: PasswordClientOptions) {
    const { redisUrl, currentRedisUrl, prefix, keyring, log, observer, telemetry } = options
    const { watch = new RedisWatch(log) } = options
    const redis = connectRedis(redisUrl, 'producer', currentRedisUrl)
    watch.watch(redis, 'commands')
    const subscriber = connectRedis(redisUrl, 'consumer', currentRedisUrl)
    watch.watch(subscriber, 'results')
    if (options.background) for (const connection of [redis, subscriber]) unrefRedis(connection)
    this.address = redisAddress(redisUrl)
    this.connection = redis
    this.eviction = new EvictionWatch(redis, this.address, log).state
    this.#options = options
    this.#subscriber = subscriber
    this.#notPromoted = new ThrottledWarning(log, 'ticketed jobs were not promoted')
    this.#writeRefused = new ThrottledWarning(log, 'redis refuses writes')
    this.#queue = openQueue({ redis, prefix, watch, telemetry })
    this.#results = new Results({ redis, subscriber, prefix, keyring, log, observer })
    const clientId = this.#results.replyTo
    this.estimates = new QueueReader({ redis, prefix, keyring, clock: this.#clock, log, clientId })
  }

  /** Epoch milliseconds by Redis's clock. */
  now(): number {
    return this.#clock.now()
  }

  /** Gives a request its place by the rules of order.ts. */
  admit(request: Request): Admitted | Refused {
    const load = this.estimates.load()
    const { mostWaiting = Number.POSITIVE_INFINITY } = this.#options
    const place = placeOf(load, request, mostWaiting)
    if (place !== 'refused') return this.admitTo(place)
    const isFull = load.open + load.line + load.active >= mostWaiting
    const retryAfterS = this.#refusals.retryAfterS(load.linePerSecond)
    return { reason: isFull ? 'too_many_waiting' : 'predicted_wait', retryAfterS }
  }

  /** Gives a request of a known device its place: first, within the share of known devices. */
  admitKnownDevice(request: Request): Admitted | Refused {
    const perSecond = this.estimates.load().jobsPerSecond / this.estimates.clients()
    if (!this.#knownDevices.takeTurn(perSecond)) return this.admit(request)
    const giveBack = () => this.#knownDevices.giveBack()
    return { place: 'open', goesFirst: true, ...this.estimates.coming('open', giveBack) }
  }

  /** Takes the place that an application has chosen: it knows the cost of its own calls. */
  admitTo(place: 'open' | 'ticketed'): Admitted {
    return { place, goesFirst: false, ...this.estimates.coming(place === 'open' ? 'open' : 'line') }
  }

  /**
   * Adds a job; a job that was added before stays as it is. Throws `queue_unavailable` when Redis
   * does not accept it, and `request_too_long`.
   */
  async submit<Name extends JobName>(submission: Submission<Name>): Promise<Submitted> {
    const { job, request, admitted, presentMs, heldMs = presentMs, requestId } = submission
    const sealed = this.#options.keyring.seal(requestSeal(job), padRequest(request))
    if (sealed.length > SEALED_MAX_LENGTH) {
      admitted.end()
      throw new PasswordClientError('request_too_long', 'the request is longer than workers accept')
    }
    const enqueuedAt = this.now()
    const data: JobData = {
      deadline: job.deadline,
      enqueuedAt,
      presentUntil: Math.min(job.deadline, Math.ceil(enqueuedAt + presentMs)),
      replyTo: this.#results.replyTo,
      sealed,
      ...(heldMs === presentMs ? {} : { heldUntil: Math.ceil(enqueuedAt + heldMs) }),
      ...(requestId === undefined ? {} : { requestId }),
    }
    // The waiter is registered before the job is added, so that no result can come too early.
    const expected = this.#results.expect(job)
    try {
      const isTicketed = admitted.place === 'ticketed'
      const number = isTicketed ? await orQueueUnavailable(this.#nextNumber(), 'the job got no number') : undefined
      await this.#connectedFor(() => this.#add(job, data, number, admitted.goesFirst))
      admitted.added()
      return { ...expected, number }
    } catch (error) {
      expected.end()
      admitted.end()
      throw error
    }
  }

  /**
   * Waits for the result of a job that this or another gateway has added. Throws
   * `queue_unavailable`.
   */
  async resume(job: JobRef): Promise<Expected & { state: JobState['kind'] }> {
    const expected = this.#results.expect(job)
    try {
      const reading = stateOfJob(this.connection, this.#options.prefix, job.id)
      const state = await orQueueUnavailable(reading, 'the result could not be asked for')
      const result = state.kind === 'result' ? this.#results.open(job, state.sealed, 'read') : undefined
      if (result === undefined) {
        // A result that does not open counts as missing.
        return { ...expected, state: state.kind === 'result' ? 'ended' : state.kind }
      }
      expected.end()
      return { job, end: () => undefined, result: async () => result, state: 'result' }
    } catch (error) {
      expected.end()
      throw error
    }
  }

  /**
   * Marks the client of a job as present for this time, in milliseconds. A job with a number gets
   * its place again, which a broken connection may have lost. Never rejects.
   */
  async present(job: JobRef, forMs: number, number?: number): Promise<void> {
    const px = Math.max(1, Math.ceil(Math.min(forMs, job.deadline - this.now())))
    const placing = number === undefined ? undefined : this.#takePlace(job, number)
    // If Redis refuses this, the job may be skipped; the next redemption starts it again.
    const marking = this.connection.set(presentKey(this.#options.prefix, job.id), this.#results.replyTo, 'PX', px)
    await Promise.all([marking.catch(() => undefined), placing])
  }

  /** A client that redeemed its ticket here went away: it may be a page that reloads. Never rejects. */
  async left(job: JobRef): Promise<void> {
    if (this.#results.isExpected(job.id)) return
    const key = presentKey(this.#options.prefix, job.id)
    try {
      // Another gateway may hold the client by now.
      if ((await this.connection.get(key)) === this.#results.replyTo) await this.connection.pexpire(key, GRACE_MS, 'LT')
    } catch {
      // It is present for some seconds more.
    }
  }

  /** Removes a waiting job. False for any other job, and while Redis does not answer. */
  async remove(job: JobRef): Promise<boolean> {
    try {
      // BullMQ also removes finished jobs, and returns the same value for jobs that do not exist.
      const { kind } = await stateOfJob(this.connection, this.#options.prefix, job.id)
      return kind === 'waiting' && (await this.#queue.remove(job.id)) === 1
    } catch {
      return false
    }
  }

  isReady(): boolean {
    return this.connection.status === 'ready' && this.#results.isSubscribed()
  }

  /**
   * Whether Redis can be reached and accepts a write. A full or read-only server refuses it. A late
   * answer counts as accepted: otherwise a slow Redis would make every gateway unready at once.
   */
  async takesWrites(): Promise<boolean> {
    if (!this.isReady()) return false
    const key = probeKey(this.#options.prefix, this.#results.replyTo)
    try {
      await within(PROBE_WITHIN_MS, this.connection.set(key, '', 'PX', PROBE_MS))
    } catch (error) {
      if (error instanceof ReplyError) {
        this.#writeRefused.warn(error, { redis: this.address })
        return false
      }
    }
    return this.isReady()
  }

  async close(): Promise<void> {
    this.estimates.close()
    this.#results.close()
    await this.#queue.close()
    await Promise.all([quitRedis(this.connection), quitRedis(this.#subscriber)])
  }

  /** The next number of the line. If Redis lost its data, numbers go on from the highest known. */
  async #nextNumber(): Promise<number> {
    const key = lineKey(this.#options.prefix)
    const { last } = this.estimates.line()
    let number = await this.connection.incr(key)
    if (number <= last) number = await this.connection.incrby(key, last + 1 - number)
    this.connection.expire(key, LINE_KEY_TTL_S).catch(() => undefined)
    this.estimates.numbered(number)
    return number
  }

  /** Repeats the work once, on the next connection, if this one breaks. */
  async #connectedFor(work: () => Promise<void>): Promise<void> {
    // The trace of the request is active until the first await.
    if (this.connection.status !== 'ready') await this.#connected()
    try {
      await work()
    } catch (error) {
      if (this.connection.status === 'ready') throw error
      await this.#connected()
      await work()
    }
  }

  /** Throws `queue_unavailable`. */
  async #add(job: JobRef, data: JobData, number: number | undefined, goesFirst: boolean): Promise<void> {
    const adding = this.#queue.add(job.name, data, {
      jobId: job.id,
      // The job waits behind all jobs that have their places, until it takes its own.
      ...(number === undefined ? {} : { priority: TICKETED_PRIORITY + 1 }),
      ...(goesFirst ? { lifo: true } : {}),
      ...traceOptions(this.#options.traceparent?.()),
    })
    await orQueueUnavailable(adding, 'the job could not be added')
    if (number !== undefined) await this.#takePlace(job, number)
    else if (this.estimates.load().line > 0)
      promote(this.connection, this.#options.prefix).catch((error: unknown) => this.#notPromoted.warn(error))
  }

  /** BullMQ's counter of prioritized jobs starts again whenever no prioritized job waits. */
  async #takePlace(job: JobRef, number: number): Promise<void> {
    const key = queueKey(this.#options.prefix, 'prioritized')
    await this.connection.zadd(key, 'XX', FIRST_SCORE + number, job.id).catch(() => undefined)
  }

  /** Waits briefly for a connection that is being replaced. Throws `queue_unavailable`. */
  async #connected(): Promise<void> {
    for (const end = performance.now() + RECONNECT_WAIT_MS; performance.now() < end; await sleep(RECONNECT_POLL_MS))
      if (this.connection.status === 'ready') return
    throw new PasswordClientError('queue_unavailable', 'there is no connection to Redis')
  }
}

/** The format of the header (W3C Trace Context, 3.2). No other value is stored in Redis. */
const TRACEPARENT = /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/

function traceOptions(traceparent: string | undefined): { telemetry?: { metadata: string } } {
  if (traceparent === undefined || !TRACEPARENT.test(traceparent)) return {}
  return { telemetry: { metadata: JSON.stringify({ traceparent }) } }
}
