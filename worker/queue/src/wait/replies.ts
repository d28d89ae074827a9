/**
 * Replies to this process: its channel, subscribed to on every new connection, and the question to
 * Redis about the jobs that requests wait for. A message is lost with its connection, and a job
 * with a server that had not persisted it. In a Cluster neither need break a connection here.
 */

import { type Logger, ThrottledWarning } from '@spillway/common/throttled-warning'
import { findJobs } from '../jobs/jobs.js'
import type { RedisClock } from '../redis/clock.js'
import type { RedisConnection } from '../redis/connect.js'
import { decodeReply, replyChannel } from '../wire/reply.js'
import type { Answers, Waiter } from './answers.js'
import type { Producer } from './producer.js'

/** How often Redis is asked: messages and jobs may be lost without any sign of a failure. */
const CHECK_INTERVAL_MS = 1_000

interface RepliesOptions {
  redis: RedisConnection
  subscriber: RedisConnection
  prefix: string
  replyTo: string
  clock: RedisClock
  log: Logger
  answers: Pick<Answers, 'submitted' | 'redeeming' | 'offer' | 'failed'>
  producer: Pick<Producer, 'add' | 'cancel'>
  /** Called for each job that was lost and has been added again. */
  addedAgain(): void
}

export class Replies {
  readonly #options: RepliesOptions
  readonly #refused
  readonly #failed
  readonly #timer: NodeJS.Timeout
  #state: 'none' | 'requested' | 'confirmed' = 'none'
  #isAsking = false

  constructor(options: RepliesOptions) {
    this.#options = options
    this.#refused = new ThrottledWarning(options.log, 'replies cannot be subscribed to')
    this.#failed = new ThrottledWarning(options.log, 'waiting jobs could not be checked')
    options.subscriber.on('message', (_channel: string, message: string) => {
      const reply = decodeReply(message)
      if (reply !== undefined) options.answers.offer(reply, 'message')
    })
    options.subscriber.on('ready', () => void this.#subscribe())
    options.redis.on('ready', this.ask)
    this.#timer = setInterval(() => this.check(), CHECK_INTERVAL_MS).unref()
  }

  /** Whether replies can arrive now. */
  isSubscribed(): boolean {
    return this.#state === 'confirmed' && this.#options.subscriber.status === 'ready'
  }

  /** Asks, and sends a PING, so that the socket timeout finds a dead connection; or subscribes. */
  check(): void {
    void this.ask()
    const { subscriber } = this.#options
    if (subscriber.status !== 'ready') return
    if (this.#state === 'confirmed') subscriber.ping().catch(() => undefined)
    else if (this.#state === 'none') void this.#subscribe()
  }

  close(): void {
    clearInterval(this.#timer)
    this.#options.redis.off('ready', this.ask)
  }

  async #subscribe(): Promise<void> {
    const { subscriber, prefix, replyTo } = this.#options
    this.#state = 'requested'
    try {
      await subscriber.subscribe(replyChannel(prefix, replyTo))
      this.#state = 'confirmed'
      this.#refused.recovered()
    } catch (error) {
      this.#state = 'none'
      this.#refused.warn(error)
    }
    // Earlier replies may have been missed.
    void this.ask()
  }

  /** Asks Redis about all jobs that requests wait for, unless it is being asked. Never rejects. */
  readonly ask = async (): Promise<void> => {
    if (this.#isAsking) return
    this.#isAsking = true
    try {
      await this.#askNow()
    } catch (error) {
      this.#failed.warn(error)
    } finally {
      this.#isAsking = false
    }
  }

  async #askNow(): Promise<void> {
    const { redis, prefix, answers } = this.#options
    const { submitted, redeeming } = answers
    const jobIds = [...submitted.jobIds(), ...redeeming.jobIds()]
    if (jobIds.length === 0 || redis.status !== 'ready') return
    const { verdicts, lost, failed } = await findJobs(redis, prefix, jobIds)
    for (const [jobId, sealed] of Object.entries(verdicts)) answers.offer({ jobId, sealed }, 'asked')
    for (const jobId of failed) answers.failed(jobId)
    const additions = await Promise.allSettled(lost.map((jobId) => this.#addAgain(submitted.get(jobId))))
    // One failure is reported for all: they have the same cause.
    const failure = additions.find((addition) => addition.status === 'rejected')
    if (failure) throw failure.reason
  }

  async #addAgain(waiter: Waiter | undefined): Promise<void> {
    const { clock, producer, addedAgain } = this.#options
    if (waiter?.data === undefined || clock.now() >= waiter.job.deadline) return
    await producer.add(waiter.job, waiter.data, 'held')
    addedAgain()
    // Withdrawn meanwhile: its cancellation may have passed the addition. A wait that has only
    // ended leaves the job to its ticket.
    if (waiter.data === undefined) await producer.cancel(waiter.job)
  }
}
