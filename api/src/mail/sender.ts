/** Takes mails from the queue and sends them, except forged and expired ones. */
import { closeConsumer } from '@spillway/queue/bullmq'
import { type Job, UnrecoverableError, Worker } from 'bullmq'
import type { MailOutcome } from '../ops/metrics.js'
import type { MailDeps } from './mail.js'
import { MAIL_QUEUE, type OpenedMail, openMail, retryDelayMs, UUID_LENGTH } from './outbox.js'
import { messageOf } from './requests.js'
import { MailError, type Smtp } from './smtp.js'
import type { MailTexts } from './texts.js'

/** Another gateway sends the mails of a killed process within LOCK + 2 × STALLED_CHECK. */
const LOCK_MS = 6_000
const STALLED_CHECK_MS = 3_000
const STALLS_ALLOWED = 5
/** The longest read in seconds: less than the socket timeout of its connection. */
const LONGEST_READ_S = 1
const READ_RETRY_MS = 250
/** Mails at a time. They wait for the mail server and take little processor time. */
const CONCURRENCY = 4

/** By default, BullMQ would block for up to ten seconds while mails are delayed. */
class MailWorker extends Worker {
  override get maximumBlockTimeout(): number {
    return LONGEST_READ_S
  }
}

// Reasons that BullMQ keeps with a mail that is given up.
const FORGED = 'forged'
const EXPIRED = 'it expired before the mail server took it'

/** Takes mails from its construction on. */
export class MailSender {
  readonly #deps: MailDeps
  readonly #texts: MailTexts
  readonly #smtp: Smtp
  readonly #worker: Worker
  #inHand = 0

  constructor(deps: MailDeps, texts: MailTexts, smtp: Smtp) {
    const { config, mailRedis: connection, watch, log } = deps
    this.#deps = deps
    this.#texts = texts
    this.#smtp = smtp
    this.#worker = new MailWorker(MAIL_QUEUE, (job) => this.#handle(job), {
      connection,
      prefix: config.queuePrefix,
      autorun: false,
      concurrency: CONCURRENCY,
      lockDuration: LOCK_MS,
      stalledInterval: STALLED_CHECK_MS,
      maxStalledCount: STALLS_ALLOWED,
      drainDelay: LONGEST_READ_S,
      runRetryDelay: READ_RETRY_MS,
      settings: { backoffStrategy: retryDelayMs },
    })
    this.#worker.on('error', (error) => watch.queueFailed(error))
    this.#worker.on('failed', (job, error) => this.#failed(job, error))
    this.#worker.run().catch((error: unknown) => log.error({ err: error }, 'mail sender stopped'))
  }

  /** Takes no more mails, and resolves when the running ones are sent or put back. */
  async close(): Promise<void> {
    await closeConsumer(this.#worker, { redis: this.#deps.mailRedis, isIdle: this.#inHand === 0 })
  }

  async #handle(job: Job): Promise<void> {
    this.#inHand++
    try {
      const mail = openMail(this.#deps.keyring, job)
      if (mail !== undefined) return await this.#send(mail, job.failedReason)
      this.#count('forged')
      throw new UnrecoverableError(FORGED)
    } finally {
      this.#inHand--
    }
  }

  async #send({ id, askedAt, deadline, request }: OpenedMail, lastReason: string | undefined): Promise<void> {
    const { now, log, metrics } = this.#deps
    const leftMs = deadline - now()
    if (leftMs < 0) {
      this.#count('expired')
      throw new UnrecoverableError(lastReason ? `${EXPIRED}: ${lastReason}` : EXPIRED)
    }
    const times = { ageMs: now() - askedAt, lifeMs: leftMs }
    const message = await messageOf(this.#deps, this.#texts, request, times).catch((error: unknown) => {
      // Not passed on: BullMQ keeps errors in Redis, and a database's errors may quote rows.
      log.warn({ err: error, mailId: id }, 'a mail could not be written')
      throw new MailError('not written', { isFinal: false })
    })
    if (message === undefined) return this.#count('nobody')
    try {
      await this.#smtp.send({ ...message, id: id.slice(0, UUID_LENGTH) })
    } catch (error) {
      if (error instanceof MailError) metrics.mailErrors.inc({ code: error.code, answer: error.answer })
      if (error instanceof MailError && error.isFinal) throw new UnrecoverableError(error.message)
      throw error
    }
    this.#count('sent')
  }

  #count(outcome: MailOutcome): void {
    this.#deps.metrics.mails.inc({ outcome })
  }

  #failed(job: Job | undefined, { message }: Error): void {
    const isFinal = job === undefined || job.finishedOn !== undefined
    if (message !== FORGED && !message.startsWith(EXPIRED)) this.#count(isFinal ? 'failed' : 'retried')
    const facts = { mailId: job?.id, reason: message }
    if (isFinal) this.#deps.log.error(facts, 'mail not sent')
    else this.#deps.log.warn(facts, 'mail not sent, retrying later')
  }
}
