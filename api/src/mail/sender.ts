/** Takes mails from the queue and sends them. Redis is not trusted: what does not open is never sent, and nothing is sent late. */
import { randomUUID } from 'node:crypto'
import type { Logger } from '@spillway/common/log'
import { throttledWarning } from '@spillway/common/throttled-warning'
import { claimCanary } from '@spillway/queue/jobs/capacity'
import { MalformedJobs } from '@spillway/queue/jobs/malformed-jobs'
import { closeConsumer, openQueue } from '@spillway/queue/jobs/open-queue'
import { SoundQueue } from '@spillway/queue/jobs/sound'
import type { RedisConnection } from '@spillway/queue/redis/connect'
import type { RedisWatch } from '@spillway/queue/redis/watch'
import { canaryOf } from '@spillway/queue/wire/capacity'
import { type Keyring, SEAL_KEYS } from '@spillway/queue/wire/seal'
import { DelayedError, type Job, UnrecoverableError, Worker } from 'bullmq'
import type { MailOutcome } from '../http/metrics.js'
import { isMailData, MAIL_QUEUE, type MailData, mailCanaryKey, mailSeal, retryDelayMs } from './outbox.js'
import { MailError, type Message, type SendMessage } from './smtp.js'

/** A killed process's mails are sent elsewhere within LOCK + 2 × STALLED_CHECK. */
const LOCK_MS = 6_000
const STALLED_CHECK_MS = 3_000
const STALLS_ALLOWED = 5
/** How long a read blocks at most, in seconds: less than the socket timeout of its connection. */
const LONGEST_READ_S = 1
/** How long after an error the queue is read again. */
const READ_RETRY_MS = 250
/** How often the keys of this gateway are compared and published. */
const CLAIM_INTERVAL_MS = 1_000
/** How long a mail that does not open here is left to other gateways, and how often this one may get it. */
const LEFT_FOR_MS = 500
const MOST_TRIES = 20
/** How long gateways with other keys are taken to be there, once they were seen. */
const OTHERS_COUNT_MS = 5_000
/** Mails at a time: they wait for the server, and take no processor. */
const CONCURRENCY = 4

export interface MailSenderOptions {
  /** Of the role `consumer`; stays the caller's to watch and to close. */
  redis: RedisConnection
  prefix: string
  /** Epoch milliseconds by the clock of this Redis server. */
  now(): number
  keyring: Keyring
  watch: RedisWatch
  /** The message of a request; undefined when nobody is to get one. May be called again for the same request. */
  messageFor(request: unknown, mail: { id: string; leftMs: number }): Promise<Message | undefined>
  send: SendMessage
  onOutcome(outcome: MailOutcome): void
  log: Pick<Logger, 'info' | 'warn' | 'error'>
}

export interface MailSender {
  /** Takes no more mails, and resolves when the running ones are sent or put back. */
  close(): Promise<void>
}

interface OpenedMail {
  id: string
  deadline: number
  request: unknown
}

/** BullMQ alone would block for up to ten seconds while mails are delayed. */
class MailWorker extends Worker {
  override get maximumBlockTimeout(): number {
    return LONGEST_READ_S
  }
}

export function startMailSender(options: MailSenderOptions): MailSender {
  const { redis, prefix, keyring, watch, onOutcome, log } = options
  const senderId = randomUUID()
  const keys = canaryOf(keyring, prefix)
  const otherKeys = throttledWarning(log, 'gateways that send mails have other keys')
  const compare = new Error(`compare ${SEAL_KEYS} with theirs`)
  let inHand = 0
  let othersSeenAt = Number.NEGATIVE_INFINITY

  /** Undefined for what does not open. */
  function open({ id, data }: Job): OpenedMail | undefined {
    try {
      if (id === undefined || !isMailData(data)) return undefined
      const { deadline } = data
      const contents = keyring.open(mailSeal(id, deadline), data.sealed)
      if (typeof contents !== 'object' || contents === null || !('request' in contents)) return undefined
      return { id, deadline, request: contents.request }
    } catch {
      return undefined
    }
  }

  /** A mail that does not open goes back once, to a gateway with other keys. False where there is none, or it could not open it either. */
  async function leaveToOthers(job: Job): Promise<boolean> {
    if (!isMailData(job.data) || job.attemptsStarted > MOST_TRIES) return false
    if (performance.now() - othersSeenAt > OTHERS_COUNT_MS) return false
    const { unopenedBy = senderId } = job.data
    if (unopenedBy !== senderId) return false
    await job.updateData({ ...job.data, unopenedBy } satisfies MailData)
    await job.moveToDelayed(Date.now() + LEFT_FOR_MS, job.token)
    otherKeys.warn(compare, { facts: { mailId: job.id } })
    return true
  }

  async function handle(job: Job): Promise<void> {
    inHand++
    try {
      const mail = open(job)
      if (mail !== undefined) return await send(mail)
      if (await leaveToOthers(job).catch(() => false)) throw new DelayedError()
      onOutcome('forged')
      throw new UnrecoverableError('forged')
    } finally {
      inHand--
    }
  }

  async function send(mail: OpenedMail): Promise<void> {
    const leftMs = mail.deadline - options.now()
    if (leftMs < 0) return onOutcome('expired')
    const message = await options.messageFor(mail.request, { id: mail.id, leftMs }).catch((error: unknown) => {
      // Not passed on: BullMQ keeps errors in Redis, and a database's errors may quote its rows.
      log.warn({ err: error, mailId: mail.id }, 'a mail could not be written')
      throw new MailError('not written', { isFinal: false })
    })
    if (message === undefined) return onOutcome('nobody')
    try {
      await options.send({ ...message, id: mail.id })
    } catch (error) {
      if (error instanceof MailError && error.isFinal) throw new UnrecoverableError(error.message)
      throw error
    }
    onOutcome('sent')
  }

  const worker = new MailWorker(MAIL_QUEUE, handle, {
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
  const sound = new SoundQueue({ redis, prefix, name: MAIL_QUEUE, log })
  const queue = openQueue({ redis, prefix, name: MAIL_QUEUE, watch })
  const malformed = new MalformedJobs({
    ...{ redis, prefix, queue, log, watch },
    jobOptions: ['removeOnComplete', 'removeOnFail'],
    removed: (count) => {
      for (let n = 0; n < count; n += 1) onOutcome('forged')
    },
  })
  worker.on('error', (error) => malformed.suspect(error))
  worker.on('failed', (job, error) => {
    const isForged = error.message === 'forged'
    const isFinal = job === undefined || job.finishedOn !== undefined
    if (!isForged) onOutcome(isFinal ? 'failed' : 'retried')
    log[isFinal ? 'error' : 'warn'](
      { mailId: job?.id, reason: error.message },
      isFinal ? 'mail not sent' : 'mail not sent, retrying later',
    )
  })

  let takesMails = false
  /** Begins to take mails, unless gateways that take them have other keys. */
  async function claim(): Promise<void> {
    if (redis.status !== 'ready') return
    const claimed = await claimCanary(redis, mailCanaryKey(prefix), keys, takesMails)
    if (claimed !== 'alone') {
      othersSeenAt = performance.now()
      otherKeys.warn(compare)
    }
    if (claimed === 'refused' || takesMails) return
    takesMails = true
    worker.run().catch((error: unknown) => log.error({ err: error }, 'mail sender stopped'))
  }
  const claimNow = () => void claim().catch(() => undefined)
  redis.on('ready', claimNow)
  claimNow()
  const timer = setInterval(claimNow, CLAIM_INTERVAL_MS)
  timer.unref()

  return {
    async close() {
      clearInterval(timer)
      redis.off('ready', claimNow)
      sound.close()
      malformed.close()
      await closeConsumer(worker, { redis, isIdle: inHand === 0 })
      await queue.close()
    },
  }
}
