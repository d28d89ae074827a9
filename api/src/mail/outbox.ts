/** Seals mails and adds them to the queue. */
import { randomUUID } from 'node:crypto'
import { openQueue } from '@spillway/queue/jobs/open-queue'
import type { RedisConnection } from '@spillway/queue/redis/connect'
import type { RedisWatch } from '@spillway/queue/redis/watch'
import { checkFor } from '@spillway/queue/wire/schema'
import type { Keyring } from '@spillway/queue/wire/seal'
import type { FromSchema } from 'json-schema-to-ts'

/** Requests are padded to a multiple of this many characters, so that the length reveals neither the kind of a mail nor its recipient. */
const FILLED_LENGTH = 2_048

export interface Outbox {
  /**
   * Adds a mail, which may be sent for so long, in milliseconds. Rejects when Redis does not accept it.
   *
   * @param request what the handler of {@link startMailSender} makes a message of
   */
  add(request: object, lifeMs: number): Promise<void>
  close(): Promise<void>
}

export function openOutbox(options: {
  /** Of the role `producer`; stays the caller's to watch and to close. */
  redis: RedisConnection
  prefix: string
  /** Epoch milliseconds by the clock of this Redis server. */
  now(): number
  keyring: Keyring
  watch: RedisWatch
}): Outbox {
  const queue = openQueue({ ...options, name: MAIL_QUEUE })
  return {
    async add(request, lifeMs) {
      const id = randomUUID()
      const deadline = options.now() + lifeMs
      const data: MailData = { sealed: options.keyring.seal(mailSeal(id, deadline), filled(request)), deadline }
      await queue.add(MAIL_JOB, data, {
        jobId: id,
        attempts: MAIL_ATTEMPTS,
        backoff: { type: 'custom' },
        removeOnComplete: true,
        removeOnFail: KEEP_FAILED,
      })
    },
    close: () => queue.close(),
  }
}

function filled(request: object): { request: object; fill: string } {
  const { length } = JSON.stringify(request)
  return { request, fill: ' '.repeat(Math.ceil(length / FILLED_LENGTH) * FILLED_LENGTH - length) }
}

/** The outbox of several Redis servers: a mail goes into the first that takes it. A mail that is tried again elsewhere may be sent twice; no mail is lost. */
interface OutboxOfRedis {
  outbox: Outbox
  isUsable(): boolean
}

/** Combines several outboxes; a single one is returned unchanged. */
export function shareOutbox(all: readonly OutboxOfRedis[]): Outbox {
  const [only] = all
  if (only !== undefined && all.length === 1) return only.outbox
  return {
    async add(request, lifeMs) {
      const usable = all.filter(({ isUsable }) => isUsable())
      let failure: unknown = new Error('no Redis server can take the mail')
      for (const { outbox } of usable.length > 0 ? usable : all) {
        try {
          return await outbox.add(request, lifeMs)
        } catch (error) {
          failure = error
        }
      }
      throw failure
    },
    close: async () => void (await Promise.all(all.map(({ outbox }) => outbox.close()))),
  }
}

// The queue of mails: its name, what is in a job, and how long a job is kept. Apart from passwords, so that no login waits for a mail.

export const MAIL_QUEUE = 'mail'
/** The key with codes of the seal keys of the gateways that send mails. */
export const mailCanaryKey = (prefix: string) => `${prefix}:mail-canary`
/** One name for all mails: the kind of a mail would tell a reader of Redis whether an address has an account. */
const MAIL_JOB = 'mail'

const MailData = {
  type: 'object',
  properties: {
    sealed: { type: 'string', maxLength: 32_768 },
    /** Epoch milliseconds by Redis's clock. Bound by the seal. */
    deadline: { type: 'integer' },
    /** The gateway that could not open it. */
    unopenedBy: { type: 'string', maxLength: 64 },
  },
  required: ['sealed', 'deadline'],
  additionalProperties: false,
} as const
export type MailData = FromSchema<typeof MailData>
export const isMailData: (value: unknown) => value is MailData = checkFor<MailData>(MailData)

/** The seal of a mail. */
export const mailSeal = (id: string, deadline: number) => ({ purpose: 'mail' as const, id, bind: [deadline] })

/**
 * A server may be away for an hour: attempts after 1, 2, 4 s and so on, then every five minutes. A mail that is past its deadline is
 * dropped before.
 */
const MAIL_ATTEMPTS = 20
const FIRST_RETRY_MS = 1_000
const LONGEST_RETRY_MS = 300_000

export function retryDelayMs(attemptsMade: number): number {
  return Math.min(FIRST_RETRY_MS * 2 ** (attemptsMade - 1), LONGEST_RETRY_MS)
}

/** Failed mails that operators find on the board, for a week at the longest, in seconds. */
const KEEP_FAILED = { count: 1_000, age: 7 * 24 * 3_600 }
