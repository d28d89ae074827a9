/** How endpoints have mail sent: a request is counted for its reader, sealed, and queued. */
import type { Keyring } from '@spillway/queue/queue-client'
import type { FastifyBaseLogger } from 'fastify'
import type { GatewayConfig } from '../config.js'
import { accountNameOf, accountOfEmail, type CountingRedis, countIn } from '../plugins/counts.js'
import { orUnavailable } from '../plugins/errors.js'
import type { GatewayMetrics } from '../plugins/metrics.js'
import type { Outbox } from './outbox.js'
import type { MailRequest, Notice } from './requests.js'

const HOUR_MS = 3_600_000
/** How long a mail without a link may be on its way, in milliseconds. */
const NOTICE_LIFE_MS = 24 * HOUR_MS
/** Notices an hour to a confirmed address. Who causes more has the account's password. */
export const NOTICES_PER_READER = 30

interface PostOptions {
  config: GatewayConfig
  outbox: Outbox
  redis: readonly CountingRedis[]
  keyring: Keyring
  metrics: Pick<GatewayMetrics, 'mails'>
  log: FastifyBaseLogger
}

export class Post {
  readonly #options: PostOptions

  constructor(options: PostOptions) {
    this.#options = options
  }

  /** How long a mail may be on its way and its token is good, in milliseconds. */
  lifeMsOf(kind: MailRequest['kind']): number {
    if (kind === 'notice') return NOTICE_LIFE_MS
    const { MAIL_RESET_TTL_S: resetS, MAIL_CONFIRM_TTL_S: confirmS } = this.#options.config
    return (kind === 'reset' ? resetS : confirmS) * 1_000
  }

  /**
   * Has a mail sent, unless its reader got too many within the hour. Resolves with whether it was
   * queued, never rejects, and takes the same work whether the account exists or not.
   *
   * @param reader the recipient's address, against whose limit the mail counts
   */
  send(request: Exclude<MailRequest, { kind: 'notice' }>, reader: string): Promise<boolean> {
    return this.#add(request, reader, 'mail')
  }

  /**
   * Tells an owner what was done to the account. Notices to a confirmed address have a limit of
   * their own: a thief would use up the other mails first. Never rejects.
   */
  notify({ email, isConfirmed }: { email: string; isConfirmed: boolean }, notice: Notice): Promise<boolean> {
    return this.#add({ kind: 'notice', email, notice }, email, isConfirmed ? 'notice' : 'mail')
  }

  /** Finds an account's unsent mails. Throws `unavailable` while a Redis server cannot be used. */
  about({ id, email }: { id: string; email: string }): ReturnType<Outbox['about']> {
    return orUnavailable(this.#options.outbox.about([id, email]))
  }

  /** Removes an account's unsent mails. A mail in a sender's hands is gone after its attempt. */
  async forget(account: { id: string; email: string }): Promise<void> {
    for (const { job } of await this.about(account)) await job.remove().catch(() => undefined)
  }

  async #add(request: MailRequest, reader: string, countedAs: 'mail' | 'notice'): Promise<boolean> {
    const { config, outbox, redis, keyring, metrics, log } = this.#options
    const { QUEUE_PREFIX: queuePrefix, LIMIT_MAIL_PER_RECIPIENT: perReader } = config
    try {
      const name = accountNameOf(accountOfEmail(reader), keyring)
      const { count } = await countIn(HOUR_MS, `${queuePrefix}:limit:${countedAs}:${name}`, redis)
      const most = countedAs === 'mail' ? perReader : Math.max(perReader, NOTICES_PER_READER)
      const isOver = perReader > 0 && count > most
      if (isOver) metrics.mails.inc({ outcome: 'limited' })
      else await outbox.add(request, this.lifeMsOf(request.kind))
      return !isOver
    } catch (error) {
      metrics.mails.inc({ outcome: 'not_queued' })
      log.warn({ err: error }, 'a mail was not queued')
      return false
    }
  }
}
