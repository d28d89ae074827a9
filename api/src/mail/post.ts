/** Sends mails for endpoints: counts a request for its reader, seals it, and queues it. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { onRequestAsyncHookHandler } from 'fastify'
import { ApiError, orUnavailable } from '../http/problems.js'
import { accountNameOf, accountOfEmail, countIn } from '../limits/limits.js'
import type { MailDeps } from './mail.js'
import type { MailState, Outbox } from './outbox.js'
import type { MailRequest, Notice } from './requests.js'

const HOUR_MS = 3_600_000
/** How long a mail without a link may be under way, in milliseconds. */
const NOTICE_LIFE_MS = 24 * HOUR_MS
/** Notices an hour to a confirmed address. A client that causes more has the account's password. */
const NOTICES_PER_READER = 30
/** How long a deletion waits for mails that are being sent, and how often it looks, in milliseconds. */
const SENDING_MS = 3_000
const SENDING_POLL_MS = 100

/** What became of a request for a mail, as the audit names it. */
export type MailQueued = 'ok' | 'too_many_mails' | 'redis'

export class Post {
  readonly #deps: MailDeps
  readonly #outbox: Outbox

  constructor(deps: MailDeps, outbox: Outbox) {
    this.#deps = deps
    this.#outbox = outbox
  }

  /** How long a mail may be under way and its token is valid, in milliseconds. */
  lifeMsOf(kind: MailRequest['kind']): number {
    if (kind === 'notice') return NOTICE_LIFE_MS
    const { mailResetTtlS: resetS, mailConfirmTtlS: confirmS } = this.#deps.config
    return (kind === 'reset' ? resetS : confirmS) * 1_000
  }

  /**
   * Queues a mail, unless its reader got too many within the hour. It never rejects, and does the
   * same work whether the account exists or not.
   *
   * @param reader the address of the recipient, whose limit counts the mail
   */
  send(request: Exclude<MailRequest, { kind: 'notice' }>, reader: string): Promise<MailQueued> {
    return this.#add(request, reader, 'mail')
  }

  /**
   * Tells an owner what was done to the account. Notices to a confirmed address have a separate
   * limit, because a thief could use up the limit of other mails first. Never rejects.
   */
  notify({ email, isConfirmed }: { email: string; isConfirmed: boolean }, notice: Notice): Promise<MailQueued> {
    return this.#add({ kind: 'notice', email, notice }, email, isConfirmed ? 'notice' : 'mail')
  }

  /** Rejects while Redis cannot be used. */
  state(): Promise<MailState> {
    return this.#outbox.state()
  }

  /** Finds an account's unsent mails. Throws `unavailable` while Redis cannot be used. */
  about({ id, email }: { id: string; email: string }): ReturnType<Outbox['about']> {
    return orUnavailable(this.#outbox.about([id, email]))
  }

  /**
   * Removes an account's unsent mails, and waits for those that are being sent. Throws `unavailable`
   * if that takes too long, or while Redis cannot be used.
   */
  async forget(account: { id: string; email: string }): Promise<void> {
    const endMs = performance.now() + SENDING_MS
    let left = (await this.about(account)).map(({ job }) => job)
    for (;;) {
      // BullMQ removes no mail that is being sent: it is locked.
      const removals = await Promise.allSettled(left.map((job) => job.remove()))
      left = left.filter((_, n) => removals[n]?.status === 'rejected')
      if (left.length === 0) return
      if (performance.now() > endMs)
        throw new ApiError('unavailable', { cause: new Error('a mail is being sent'), retryAfterS: SENDING_MS / 1_000 })
      await sleep(SENDING_POLL_MS)
    }
  }

  async #add(request: MailRequest, reader: string, countedAs: 'mail' | 'notice'): Promise<MailQueued> {
    const { config, redis, keyring, metrics, log } = this.#deps
    const { queuePrefix, limitMailPerRecipient: perReader } = config
    try {
      const name = accountNameOf(accountOfEmail(reader), keyring)
      const { count } = await countIn(HOUR_MS, `${queuePrefix}:limit:${countedAs}:${name}`, redis)
      const most = countedAs === 'mail' ? perReader : Math.max(perReader, NOTICES_PER_READER)
      const isOver = perReader > 0 && count > most
      if (isOver) metrics.mails.inc({ outcome: 'limited' })
      else await this.#outbox.add(request, this.lifeMsOf(request.kind))
      return isOver ? 'too_many_mails' : 'ok'
    } catch (error) {
      metrics.mails.inc({ outcome: 'not_queued' })
      log.warn({ err: error }, 'a mail was not queued')
      return 'redis'
    }
  }
}

/** A hook that refuses requests if no mail is sent. */
export function requireMail({ post }: { post: Post | undefined }): onRequestAsyncHookHandler {
  return async () => {
    if (post === undefined) throw new ApiError('mail_off')
  }
}
