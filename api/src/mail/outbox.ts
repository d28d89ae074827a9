/** Seals mails and adds them to the queue. */

import { randomUUID } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { readJob } from '@spillway/queue/bullmq'
import { objectOf } from '@spillway/queue/wire/object-schema'
import { checkFor } from '@spillway/queue/wire/schema'
import type { Keyring } from '@spillway/queue/wire/seal'
import type { Job, JobType, Queue } from 'bullmq'
import type { FromSchema } from 'json-schema-to-ts'
import { accountNameOf, accountNamesOf } from '../limits/limits.js'

/** Requests are padded to a multiple of this length in bytes, which hides kind and recipient. */
const FILLED_LENGTH = 2_048

const STATES = ['wait', 'prioritized', 'delayed', 'active', 'failed'] satisfies JobType[]
/** Ids that are compared before other requests have their turn: about 5 ms. */
const COMPARED_TOGETHER = 500

/** A mail may be sent twice; no mail is lost. */
export class Outbox {
  readonly #queue: Queue
  readonly #keyring: Keyring
  readonly #now: () => number

  /** @param now epoch milliseconds by Redis's clock */
  constructor(queue: Queue, keyring: Keyring, now: () => number) {
    this.#queue = queue
    this.#keyring = keyring
    this.#now = now
  }

  /**
   * Adds a mail, which may be sent for `lifeMs` milliseconds. Rejects if Redis does not accept it.
   *
   * @param request what the sender makes a message of
   */
  async add(request: object, lifeMs: number): Promise<void> {
    const id = newMailId(request, this.#keyring)
    const askedAt = this.#now()
    const deadline = askedAt + lifeMs
    const sealed = this.#keyring.seal(mailSeal(id, deadline), { request, askedAt }, FILLED_LENGTH)
    const data: MailData = { sealed, deadline }
    await this.#queue.add(MAIL_JOB, data, {
      jobId: id,
      attempts: MAIL_ATTEMPTS,
      backoff: { type: 'custom' },
      removeOnComplete: true,
      removeOnFail: KEEP_FAILED,
    })
  }

  /** Rejects while Redis cannot be used. */
  async state(): Promise<MailState> {
    const [isPaused, [next]] = await Promise.all([this.#queue.isPaused(), this.#queue.getRanges(['delayed'], 0, 0)])
    const tried = next === undefined ? undefined : await readJob(this.#queue, next)
    return { isPaused, lastReason: tried?.failedReason }
  }

  /** Finds unsent mails with one of these texts. Rejects while Redis cannot be used. */
  async about(texts: readonly string[]): Promise<{ job: Job; request: object }[]> {
    const found: { job: Job; request: object }[] = []
    const ids = await this.#queue.getRanges(STATES, 0, -1)
    for (let first = 0; first < ids.length; first += COMPARED_TOGETHER) {
      const some = ids.slice(first, first + COMPARED_TOGETHER).filter((id) => isAbout(id, texts, this.#keyring))
      for (const job of await Promise.all(some.map((id) => readJob(this.#queue, id)))) {
        if (job === undefined) continue
        const request = Object(openMail(this.#keyring, job)?.request)
        if (Object.values(request).some((value) => texts.some((text) => text === value))) found.push({ job, request })
      }
      await setImmediate()
    }
    return found
  }

  async close(): Promise<void> {
    await this.#queue.close()
  }
}

/** The fields of requests by which a mail is found. */
const FOUND_BY = ['userId', 'email', 'newEmail']

/** What is sent of an id: mail programs fold longer ones. */
export const UUID_LENGTH = 36

/** A UUID, and keyed names of these fields. They depend on the UUID, so that no two mails have one in common. */
function newMailId(request: object, keyring: Keyring): string {
  const uuid = randomUUID()
  const texts = Object.entries(request).flatMap(([field, text]) => (FOUND_BY.includes(field) ? [String(text)] : []))
  const [one = '', other = ''] = texts
  return uuid + accountNameOf(uuid + one, keyring) + accountNameOf(uuid + other, keyring)
}

function isAbout(id: string, texts: readonly string[], keyring: Keyring): boolean {
  const uuid = id.slice(0, UUID_LENGTH)
  return texts.some((text) => accountNamesOf(uuid + text, keyring).some((name) => id.includes(name)))
}

/** Undefined for a mail that does not open. */
export function openMail(keyring: Keyring, { id, data }: Job<unknown>): OpenedMail | undefined {
  try {
    if (id === undefined || !isMailData(data)) return undefined
    const { deadline } = data
    const { request, askedAt = 0 } = Object(keyring.open(mailSeal(id, deadline), data.sealed))
    return { id, askedAt, deadline, request }
  } catch {
    return undefined
  }
}

export interface MailState {
  isPaused: boolean
  /** Why the mail that is tried again next was not sent: an untrusted text from Redis; undefined if all were sent. */
  lastReason: string | undefined
}

export interface OpenedMail {
  id: string
  /** Epoch milliseconds by Redis's clock. */
  askedAt: number
  deadline: number
  request: unknown
}

// The queue of mails is separate from the queue of passwords, so no login waits for a mail.

export const MAIL_QUEUE = 'mail'
/** One name for all mails: the kind would reveal whether an address has an account. */
const MAIL_JOB = 'mail'

const MailData = objectOf({
  sealed: { type: 'string', maxLength: 32_768 },
  /** Epoch milliseconds by Redis's clock. Bound by the seal. */
  deadline: { type: 'integer' },
})
type MailData = FromSchema<typeof MailData>
export const isMailData: (value: unknown) => value is MailData = checkFor<MailData>(MailData)

const mailSeal = (id: string, deadline: number) => ({ purpose: 'mail' as const, id, bind: [deadline] })

/** Retries after 1, 2, 4 s and so on, later every five minutes until the deadline. */
const MAIL_ATTEMPTS = 20
const FIRST_RETRY_MS = 1_000
const LONGEST_RETRY_MS = 300_000

export function retryDelayMs(attemptsMade: number): number {
  return Math.min(FIRST_RETRY_MS * 2 ** (attemptsMade - 1), LONGEST_RETRY_MS)
}

/** Failed mails that operators find on the board, for at most a week, in seconds. */
const KEEP_FAILED = { count: 1_000, age: 7 * 24 * 3_600 }
