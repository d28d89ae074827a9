/** Seals mails and adds them to the queue. */

import { randomUUID } from 'node:crypto'
import { readJob } from '@spillway/queue/jobs/jobs'
import { objectOf } from '@spillway/queue/wire/object-schema'
import { checkFor } from '@spillway/queue/wire/schema'
import type { Keyring } from '@spillway/queue/wire/seal'
import type { Job, JobsOptions, JobType, Queue } from 'bullmq'
import type { FromSchema } from 'json-schema-to-ts'

/** Requests are padded to a multiple of this length: it reveals neither kind nor recipient. */
const FILLED_LENGTH = 2_048

const STATES = ['wait', 'prioritized', 'delayed', 'active', 'failed'] satisfies JobType[]

/** Where mails are put: the queue of one Redis server. */
interface MailPlace {
  queue: Pick<Queue, 'getRanges' | 'getJob' | 'close'> & {
    add(name: string, data: MailData, options: JobsOptions): Promise<unknown>
  }
  isUsable(): boolean
  /** Epoch milliseconds by the clock of this Redis server. */
  now(): number
}

/** The first Redis server that takes a mail has it. A mail may be sent twice; no mail is lost. */
export class Outbox {
  readonly #places: readonly MailPlace[]
  readonly #keyring: Keyring

  constructor(places: readonly MailPlace[], keyring: Keyring) {
    this.#places = places
    this.#keyring = keyring
  }

  /**
   * Adds a mail, which may be sent for so long, in milliseconds. Rejects when no Redis server
   * accepts it.
   *
   * @param request what the sender makes a message of
   */
  async add(request: object, lifeMs: number): Promise<void> {
    const usable = this.#places.filter(({ isUsable }) => isUsable())
    let failure: unknown = new Error('no Redis server can take the mail')
    for (const place of usable.length > 0 ? usable : this.#places) {
      try {
        return await this.#addTo(place, request, lifeMs)
      } catch (error) {
        failure = error
      }
    }
    throw failure
  }

  async #addTo({ queue, now }: MailPlace, request: object, lifeMs: number): Promise<void> {
    const id = randomUUID()
    const deadline = now() + lifeMs
    const data: MailData = { sealed: this.#keyring.seal(mailSeal(id, deadline), filled(request)), deadline }
    await queue.add(MAIL_JOB, data, {
      jobId: id,
      attempts: MAIL_ATTEMPTS,
      backoff: { type: 'custom' },
      removeOnComplete: true,
      removeOnFail: KEEP_FAILED,
    })
  }

  /** Finds unsent mails with one of these texts. Rejects while a Redis server cannot be used. */
  async about(texts: readonly string[]): Promise<{ job: Job; request: object }[]> {
    const found: { job: Job; request: object }[] = []
    for (const { queue, isUsable } of this.#places) {
      if (!isUsable()) throw new Error('a Redis server of the mail queue cannot be used')
      for (const id of await queue.getRanges(STATES, 0, -1)) {
        const job = await readJob(queue, id)
        if (job === undefined || job === 'malformed') continue
        const request = Object(openMail(this.#keyring, job)?.request)
        if (Object.values(request).some((value) => texts.some((text) => text === value))) found.push({ job, request })
      }
    }
    return found
  }

  async close(): Promise<void> {
    await Promise.all(this.#places.map(({ queue }) => queue.close()))
  }
}

/** Undefined for what does not open. */
export function openMail(keyring: Keyring, { id, data }: Pick<Job<unknown>, 'id' | 'data'>): OpenedMail | undefined {
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

export interface OpenedMail {
  id: string
  deadline: number
  request: unknown
}

function filled(request: object): { request: object; fill: string } {
  const { length } = JSON.stringify(request)
  return { request, fill: ' '.repeat(Math.ceil(length / FILLED_LENGTH) * FILLED_LENGTH - length) }
}

// The queue of mails is apart from passwords: no login waits for a mail.

export const MAIL_QUEUE = 'mail'
/** The key with codes of the seal keys of the gateways that send mails. */
export const mailCanaryKey = (prefix: string) => `${prefix}:mail-canary`
/** One name for all mails: the kind would tell whether an address has an account. */
const MAIL_JOB = 'mail'

const MailData = objectOf(
  {
    sealed: { type: 'string', maxLength: 32_768 },
    /** Epoch milliseconds by Redis's clock. Bound by the seal. */
    deadline: { type: 'integer' },
  },
  {
    /** The gateway that could not open it. */
    unopenedBy: { type: 'string', maxLength: 64 },
  },
)
export type MailData = FromSchema<typeof MailData>
export const isMailData: (value: unknown) => value is MailData = checkFor<MailData>(MailData)

const mailSeal = (id: string, deadline: number) => ({ purpose: 'mail' as const, id, bind: [deadline] })

/** Attempts after 1, 2, 4 s and so on, then every five minutes until the deadline. */
const MAIL_ATTEMPTS = 20
const FIRST_RETRY_MS = 1_000
const LONGEST_RETRY_MS = 300_000

export function retryDelayMs(attemptsMade: number): number {
  return Math.min(FIRST_RETRY_MS * 2 ** (attemptsMade - 1), LONGEST_RETRY_MS)
}

/** Failed mails that operators find on the board, for a week at the longest, in seconds. */
const KEEP_FAILED = { count: 1_000, age: 7 * 24 * 3_600 }
