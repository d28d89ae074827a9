/** Takes mails from the queue and sends them. Nothing forged is sent, and nothing late. */
import { randomUUID } from 'node:crypto'
import type { Logger } from '@spillway/common/log'
import { ThrottledWarning } from '@spillway/common/throttled-warning'
import { claimCanary } from '@spillway/queue/jobs/capacity'
import { closeConsumer, openQueue } from '@spillway/queue/jobs/jobs'
import { MalformedJobs, SoundQueue } from '@spillway/queue/jobs/malformed-jobs'
import type { RedisConnection } from '@spillway/queue/redis/connect'
import type { RedisWatch } from '@spillway/queue/redis/watch'
import { canaryOf } from '@spillway/queue/wire/capacity'
import { type Keyring, SEAL_KEYS } from '@spillway/queue/wire/seal'
import { DelayedError, type Job, type Queue, UnrecoverableError, Worker } from 'bullmq'
import type { GatewayMetrics, MailOutcome } from '../plugins/metrics.js'
import {
  isMailData,
  MAIL_QUEUE,
  type MailData,
  mailCanaryKey,
  type OpenedMail,
  openMail,
  retryDelayMs,
} from './outbox.js'
import type { MailWriter } from './requests.js'
import { MailError, type Smtp } from './smtp.js'

/** A killed process's mails are sent elsewhere within LOCK + 2 × STALLED_CHECK. */
const LOCK_MS = 6_000
const STALLED_CHECK_MS = 3_000
const STALLS_ALLOWED = 5
/** How long a read blocks at most, in seconds: less than the socket timeout of its connection. */
const LONGEST_READ_S = 1
const READ_RETRY_MS = 250
/** How often the keys of this gateway are compared and published. */
const CLAIM_INTERVAL_MS = 1_000
/** How long a mail that does not open here is left to others. */
const LEFT_FOR_MS = 500
/** How long gateways with other keys are taken to be there, once they were seen: they may stand still. */
const OTHERS_COUNT_MS = 60_000
const compareKeys = new Error(`compare ${SEAL_KEYS} with theirs`)
/** Mails at a time: they wait for the server, and take no processor. */
const CONCURRENCY = 4

interface MailSenderOptions {
  /** Of the role `consumer`; stays the caller's to watch and to close. */
  redis: RedisConnection
  prefix: string
  /** Epoch milliseconds by the clock of this Redis server. */
  now(): number
  keyring: Keyring
  watch: RedisWatch
  writer: MailWriter
  smtp: Smtp
  metrics: Pick<GatewayMetrics, 'mails' | 'mailErrors'>
  log: Pick<Logger, 'info' | 'warn' | 'error'>
}

/** BullMQ alone would block for up to ten seconds while mails are delayed. */
class MailWorker extends Worker {
  override get maximumBlockTimeout(): number {
    return LONGEST_READ_S
  }
}

/** Takes mails from its construction on, unless gateways that take them have other keys. */
export class MailSender {
  readonly #options: MailSenderOptions
  readonly #id = randomUUID()
  readonly #otherKeys: ThrottledWarning
  readonly #worker: Worker
  readonly #sound: SoundQueue
  readonly #queue: Queue
  readonly #malformed: MalformedJobs
  readonly #timer: NodeJS.Timeout
  readonly #claimNow = () => void this.#claim().catch(() => undefined)
  #takesMails = false
  #inHand = 0
  #othersSeenAt = Number.NEGATIVE_INFINITY

  constructor(options: MailSenderOptions) {
    const { redis, prefix, watch, log } = options
    this.#options = options
    this.#otherKeys = new ThrottledWarning(log, 'gateways that send mails have other keys')
    this.#worker = new MailWorker(MAIL_QUEUE, (job) => this.#handle(job), {
      connection: redis,
      prefix,
      autorun: false,
      concurrency: CONCURRENCY,
      lockDuration: LOCK_MS,
      stalledInterval: STALLED_CHECK_MS,
      maxStalledCount: STALLS_ALLOWED,
      drainDelay: LONGEST_READ_S,
      runRetryDelay: READ_RETRY_MS,
      settings: { backoffStrategy: retryDelayMs },
    })
    this.#sound = new SoundQueue({ redis, prefix, name: MAIL_QUEUE, log })
    this.#queue = openQueue({ redis, prefix, name: MAIL_QUEUE, watch })
    this.#malformed = new MalformedJobs({
      ...{ redis, prefix, queue: this.#queue, log, watch },
      jobOptions: ['removeOnComplete', 'removeOnFail'],
      removed: (count) => this.#count('forged', count),
    })
    this.#worker.on('error', (error) => this.#malformed.suspect(error))
    this.#worker.on('failed', (job, error) => this.#failed(job, error))
    redis.on('ready', this.#claimNow)
    this.#claimNow()
    this.#timer = setInterval(this.#claimNow, CLAIM_INTERVAL_MS)
    this.#timer.unref()
  }

  /** Takes no more mails, and resolves when the running ones are sent or put back. */
  async close(): Promise<void> {
    const { redis } = this.#options
    clearInterval(this.#timer)
    redis.off('ready', this.#claimNow)
    this.#sound.close()
    this.#malformed.close()
    await closeConsumer(this.#worker, { redis, isIdle: this.#inHand === 0 })
    await this.#queue.close()
  }

  /** Begins to take mails, unless gateways that take them have other keys. */
  async #claim(): Promise<void> {
    const { redis, prefix, keyring, log } = this.#options
    if (redis.status !== 'ready') return
    const keys = canaryOf(keyring, prefix)
    const claimed = await claimCanary(redis, mailCanaryKey(prefix), keys, this.#takesMails)
    if (claimed !== 'alone') {
      this.#othersSeenAt = performance.now()
      this.#otherKeys.warn(compareKeys)
    }
    if (claimed === 'refused' || this.#takesMails) return
    this.#takesMails = true
    this.#worker.run().catch((error: unknown) => log.error({ err: error }, 'mail sender stopped'))
  }

  async #handle(job: Job): Promise<void> {
    this.#inHand++
    try {
      const mail = openMail(this.#options.keyring, job)
      if (mail !== undefined) return await this.#send(mail)
      if (await this.#leaveToOthers(job)) throw new DelayedError()
      this.#count('forged')
      throw new UnrecoverableError('forged')
    } finally {
      this.#inHand--
    }
  }

  /**
   * A mail that does not open here goes back until another gateway takes it, however often: the
   * others may be busy with slow mails. False where another gateway failed to open it, or is not
   * there.
   */
  async #leaveToOthers(job: Job): Promise<boolean> {
    if (!isMailData(job.data)) return false
    if (performance.now() - this.#othersSeenAt > OTHERS_COUNT_MS) return false
    const { unopenedBy = this.#id } = job.data
    if (unopenedBy !== this.#id) return false
    await job.updateData({ ...job.data, unopenedBy } satisfies MailData)
    await job.moveToDelayed(Date.now() + LEFT_FOR_MS, job.token)
    this.#otherKeys.warn(compareKeys, { facts: { mailId: job.id } })
    return true
  }

  async #send({ id, deadline, request }: OpenedMail): Promise<void> {
    const { now, writer, smtp, log } = this.#options
    const leftMs = deadline - now()
    if (leftMs < 0) return this.#count('expired')
    const message = await writer.messageOf(request, leftMs).catch((error: unknown) => {
      // Not passed on: BullMQ keeps errors in Redis, and a database's errors may quote its rows.
      log.warn({ err: error, mailId: id }, 'a mail could not be written')
      throw new MailError('not written', { isFinal: false })
    })
    if (message === undefined) return this.#count('nobody')
    try {
      await smtp.send({ ...message, id })
    } catch (error) {
      if (error instanceof MailError) this.#options.metrics.mailErrors.inc({ code: error.code, answer: error.answer })
      if (error instanceof MailError && error.isFinal) throw new UnrecoverableError(error.message)
      throw error
    }
    this.#count('sent')
  }

  #count(outcome: MailOutcome, mails = 1): void {
    this.#options.metrics.mails.inc({ outcome }, mails)
  }

  #failed(job: Job | undefined, { message }: Error): void {
    const isFinal = job === undefined || job.finishedOn !== undefined
    if (message !== 'forged') this.#count(isFinal ? 'failed' : 'retried')
    const facts = { mailId: job?.id, reason: message }
    if (isFinal) this.#options.log.error(facts, 'mail not sent')
    else this.#options.log.warn(facts, 'mail not sent, retrying later')
  }
}
