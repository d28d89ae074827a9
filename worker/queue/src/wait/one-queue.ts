/**
 * The client of the password queue of one Redis server: seals passwords into jobs and opens their
 * verdicts. The reply channel is subscribed to at start. Messages and jobs may be lost: Redis is
 * asked when a connection is restored, every second, and at the end of a wait.
 */
import { randomUUID } from 'node:crypto'
import { ThrottledWarning } from '@spillway/common/throttled-warning'
import { within } from '@spillway/common/within'
import { ReplyError } from 'ioredis'
import { orQueueUnavailable, PasswordClientError } from '../errors.js'
import { unrefRedis } from '../inside/ioredis.js'
import { probeKey } from '../jobs/keys.js'
import { enterLine, leave, type Presence, presentMs, readTicket, type TicketState } from '../jobs/ticket.js'
import { RedisClock } from '../redis/clock.js'
import { connectRedis, quitRedis, type RedisConnection } from '../redis/connect.js'
import { EvictionWatch } from '../redis/eviction.js'
import type { RedisServer } from '../redis/servers.js'
import { RedisWatch } from '../redis/watch.js'
import type { Load } from '../wire/capacity.js'
import { newId } from '../wire/id.js'
import {
  DEFAULT_QUEUE_PREFIX,
  type JobData,
  type JobName,
  type Lane,
  padRequest,
  type Requests,
  SEALED_MAX_LENGTH,
} from '../wire/job.js'
import { type JobRef, requestSeal } from '../wire/reply.js'
import { Answers, type Asked, type PendingJob, type ResumedJob } from './answers.js'
import { LoadReader, READ_INTERVAL_MS } from './load.js'
import { jobsAhead, type Line } from './load-state.js'
import type { PasswordClient, QueueClientOptions, RedisOfQueue, SubmitOptions } from './password-client.js'
import { Producer } from './producer.js'
import { Replies } from './replies.js'

/** How long the key of a probe stays. */
const PROBE_MS = 1_000
/** Requests of one gateway that may wait for a job: enough for a client that lost connections. */
const REDEEMERS_MAX = 8
/** Time limit for reading a ticket at the end of a wait: no answer must wait for Redis. */
const ANSWER_WITHIN_MS = 500

/** The client of one queue, with what a choice between several needs. */
export class QueueClient implements PasswordClient {
  readonly redis: readonly [RedisOfQueue]
  readonly #options: QueueClientOptions
  readonly #id: string
  readonly #prefix: string
  readonly #replyTo = randomUUID()
  readonly #clock = new RedisClock()
  readonly #commands: RedisConnection
  readonly #subscriber: RedisConnection
  readonly #answers: Answers
  readonly #producer: Producer
  readonly reader: LoadReader
  readonly #replies: Replies
  readonly #writeRefused: ThrottledWarning

  constructor({ id, url, currentUrl, address }: RedisServer, options: QueueClientOptions) {
    const { keyring, log, observer, prefix = DEFAULT_QUEUE_PREFIX, watch = new RedisWatch(log) } = options
    const clock = this.#clock
    const redis = connectRedis(url, 'producer', currentUrl)
    watch.watch(redis, 'commands')
    const eviction = new EvictionWatch(redis, address, log).state
    const subscriber = connectRedis(url, 'consumer', currentUrl)
    watch.watch(subscriber, 'replies')
    if (options.background) for (const connection of [redis, subscriber]) unrefRedis(connection)
    this.#options = options
    this.#writeRefused = new ThrottledWarning(log, 'redis refuses writes')
    this.#id = id
    this.#prefix = prefix
    this.#commands = redis
    this.#subscriber = subscriber
    const answers = new Answers({
      ...{ keyring, log },
      received: (source) => observer?.verdictReceived(source),
      broken: () => observer?.verdictBroken(),
    })
    this.#answers = answers
    const { telemetry, traceparent, maxAbsent } = options
    const producer = new Producer({ redis, prefix, clock, log, watch, telemetry, traceparent })
    this.#producer = producer
    this.reader = new LoadReader({ redis, prefix, keyring, clock, log, maxAbsent })
    this.#replies = new Replies({
      ...{ redis, subscriber, prefix, replyTo: this.#replyTo, clock, log, answers, producer },
      addedAgain: () => observer?.jobAddedAgain(),
    })
    this.redis = [
      {
        ...{ id, address, connection: redis, isReady: () => this.isReady(), isUsable: () => true },
        takesWrites: () => this.#takesWrites(),
        ...{ now: clock.now, line: () => this.line(), eviction },
      },
    ]
  }

  async submit<Name extends JobName>(
    name: Name,
    request: Requests[Name],
    { lane = 'held', lifeMs = this.#options.jobLifeMs, waitMs = lifeMs, requestId }: SubmitOptions = {},
  ): Promise<PendingJob> {
    const producer = this.#producer
    const { submitted } = this.#answers
    // In an outage this fails before a job exists that would have to be cancelled. With a
    // connection nothing is awaited here: the active trace context lasts until the first await.
    if (this.#commands.status !== 'ready') await producer.connected()
    const enqueuedAt = this.#clock.now()
    const job: JobRef = { id: newId(), name, deadline: enqueuedAt + lifeMs }
    const sealed = this.#options.keyring.seal(requestSeal(job), padRequest(request))
    if (sealed.length > SEALED_MAX_LENGTH)
      throw new PasswordClientError('request_too_long', 'the request is longer than workers accept')
    const times = { deadline: job.deadline, enqueuedAt }
    const data: JobData = {
      ...times,
      replyTo: this.#replyTo,
      sealed,
      ...(requestId === undefined ? {} : { requestId }),
    }
    // The waiter is registered before the job is added, so that no answer can come too early.
    const waiter = submitted.hold(job)
    try {
      await producer.addWithRetry(job, data, lane)
      submitted.added(job.id, data)
    } catch (error) {
      submitted.release(job.id)
      // Redis may have run a command whose answer was lost.
      void producer.cancel(job)
      throw error
    }
    const isInLine = lane === 'deferred' || lane === 'behind'
    const number = isInLine ? await this.#numberOf(job, lane, lifeMs, waitMs) : undefined
    const { waiting, deferred } = this.load()
    if (!isInLine && deferred > 0) producer.promoteOldestDeferred()
    if (lane === 'known' && waiting > 0) producer.bringForward(job.id)
    this.reader.added(lane)
    const addedAt = performance.now()
    return this.#answers.pending(submitted, waiter, {
      // A client of a job that was held has a ticket from then on, which nobody may come for.
      ask: () => this.#ask(job, isInLine ? undefined : this.#presence(job, 0)),
      known: () => (performance.now() - addedAt < READ_INTERVAL_MS ? this.#expectNew(lane, number) : undefined),
    })
  }

  async resume(job: JobRef, waitMs = job.deadline - this.now(), isPresent = true): Promise<ResumedJob> {
    const { redeeming } = this.#answers
    if (redeeming.holders(job.id) >= REDEEMERS_MAX)
      throw new PasswordClientError('held_too_often', 'enough connections wait for this job already')
    const waiter = redeeming.hold(job)
    try {
      const presence = isPresent ? this.#presence(job, waitMs) : undefined
      const reading = readTicket(this.#commands, this.#prefix, job, presence)
      const state = await orQueueUnavailable(reading, 'the verdict could not be asked for')
      const asked = this.#askedOf(job, state)
      if (asked.sealed !== undefined) this.#answers.stored({ jobId: job.id, sealed: asked.sealed })
      return {
        ...this.#answers.pending(redeeming, waiter, { asked, ask: () => this.#ask(job) }),
        // Where this is the only server that is known here, the job may be on another.
        isLost: !state.exists && state.verdict === undefined && (job.server ?? this.#id) === this.#id,
      }
    } catch (error) {
      redeeming.release(job.id)
      throw error
    }
  }

  async left(job: JobRef): Promise<void> {
    // A page that reloads may be back before its old connection is known to be gone.
    if (this.#answers.redeeming.holders(job.id) > 0) return
    // Where Redis does not say, it is present for some seconds more.
    await leave(this.#commands, this.#prefix, job.id, this.#replyTo).catch(() => undefined)
  }

  cancel(job: JobRef): Promise<boolean> {
    this.#answers.submitted.withdraw(job.id)
    return this.#producer.cancel(job)
  }

  whenKnown(waitMs: number): Promise<void> {
    return this.reader.whenKnown(waitMs)
  }

  load(): Load {
    return this.reader.current()
  }

  finishedJobs(): number {
    return this.reader.finishedJobs()
  }

  hasOtherKeys(): boolean {
    return this.reader.hasOtherKeys()
  }

  predictedWaitMs(lane: Lane): number {
    return this.reader.predictedWaitMs(lane)
  }

  now(): number {
    return this.#clock.now()
  }

  isReady(): boolean {
    return this.#commands.status === 'ready' && this.#replies.isSubscribed()
  }

  line(): Line {
    return this.reader.line()
  }

  /** Resolves when Redis takes a small write. */
  async probe(): Promise<void> {
    await this.#commands.set(probeKey(this.#prefix, this.#replyTo), '', 'PX', PROBE_MS)
  }

  /** A server that does not answer in time refuses nothing: all gateways would leave at once. */
  async #takesWrites(): Promise<boolean> {
    if (!this.isReady()) return false
    const refusal = await within(ANSWER_WITHIN_MS, this.probe()).then(
      () => undefined,
      (error: unknown) => error,
    )
    if (!(refusal instanceof ReplyError)) return this.isReady()
    this.#writeRefused.warn(refusal, { facts: { redis: this.redis[0].address } })
    return false
  }

  async close(): Promise<void> {
    this.reader.close()
    this.#replies.close()
    await this.#producer.close()
    await Promise.all([quitRedis(this.#commands), quitRedis(this.#subscriber)])
  }

  /** A job's client is present while it is held, and then until it was told to come back. */
  #presence(job: JobRef, waitMs: number): Presence {
    return { replyTo: this.#replyTo, forMs: presentMs(waitMs, job.deadline - this.now()) }
  }

  /** Where Redis does not say, the job has no number, and is never passed over. */
  async #numberOf(job: JobRef, lane: Lane, lifeMs: number, waitMs: number): Promise<number | undefined> {
    const presence = lane === 'behind' ? undefined : { replyTo: this.#replyTo, forMs: presentMs(waitMs, lifeMs) }
    const { last } = this.line()
    const number = await enterLine(this.#commands, this.#prefix, job, presence, last).catch(() => undefined)
    if (number !== undefined) this.reader.numbered(number)
    return number
  }

  /** What a new job has to expect, as known here. Jobs added during a reading may count twice. */
  #expectNew(lane: Lane, number: number | undefined) {
    return { ahead: Math.max(0, jobsAhead(this.load(), lane) - 1), waitMs: this.predictedWaitMs(lane), number }
  }

  /** With a presence, the client of the job's ticket is there from now on. Never rejects. */
  async #ask(job: JobRef, presence?: Presence): Promise<Asked> {
    const reading = readTicket(this.#commands, this.#prefix, job, presence)
    const state = await within(ANSWER_WITHIN_MS, reading).catch(() => undefined)
    if (state !== undefined) return this.#askedOf(job, state)
    const waitMs = this.predictedWaitMs('deferred')
    return { sealed: undefined, expectation: { ahead: undefined, waitMs, number: undefined } }
  }

  #askedOf(job: JobRef, { verdict, number, place }: TicketState): Asked {
    const sealed = verdict === 'malformed' ? this.#answers.broken(job) : verdict
    const waitMs = this.reader.expectedWaitMs(place)
    return { sealed, expectation: { ahead: place.held + place.deferred, waitMs, number } }
  }
}
