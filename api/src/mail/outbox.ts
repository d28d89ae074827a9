/** Seals mails and adds them to the queue. */
import { randomUUID } from 'node:crypto'
import type { Keyring } from '@spillway/client/protocol/seal'
import { openQueue } from '@spillway/client/queue/open-queue'
import type { RedisConnection } from '@spillway/client/redis/connect'
import type { RedisWatch } from '@spillway/client/redis/watch'
import { KEEP_FAILED, MAIL_ATTEMPTS, MAIL_JOB, MAIL_QUEUE, type MailData, mailSeal } from './queue.js'

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
