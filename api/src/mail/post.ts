/** How endpoints have mail sent: a request is counted for its reader, sealed, and put into the queue; gateways send from there. */
import type { FastifyBaseLogger } from 'fastify'
import type { GatewayMetrics } from '../http/metrics.js'
import { accountOfEmail } from '../limits/account-name.js'
import { type CountingRedis, createSharedCounts } from '../limits/shared-counts.js'
import type { Outbox } from './outbox.js'
import type { MailRequest, Notice } from './requests.js'

const HOUR_MS = 3_600_000
/** How long a mail without a link may be on its way, in milliseconds. */
const NOTICE_LIFE_MS = 24 * HOUR_MS
/**
 * Notices an hour to an address that was confirmed. No owner changes an account so often. An attacker who causes so many has its password,
 * and the reader was then told thirty times.
 */
export const NOTICES_PER_READER = 30

/** To whom a notice goes. */
export interface Owner {
  email: string
  /** Whether the address was confirmed as theirs. */
  isConfirmed: boolean
}

export interface Post {
  /**
   * Has a mail sent, unless its reader got too many within the hour. Never rejects, and takes the same work whether there is such an account
   * or not: its caller answers the same in any case.
   *
   * @param reader the recipient's address, against whose limit the mail counts
   */
  send(request: Exclude<MailRequest, { kind: 'notice' }>, reader: string): Promise<void>
  /**
   * Tells an owner what was done to the account. A confirmed address has a limit for notices alone, because a thief would use up the other
   * mails first. Any other address may be a stranger's: its notices count as other mails do. Never rejects.
   */
  notify(owner: Owner, notice: Notice): Promise<void>
  /** How long a mail may be on its way and its token is good, in milliseconds. */
  lifeMsOf(kind: MailRequest['kind']): number
}

export interface PostOptions {
  outbox: Outbox
  redis: readonly CountingRedis[]
  queuePrefix: string
  /** The name of an account in Redis. */
  accountNameOf(account: string): string
  /** Mails an hour; 0 is no limit. */
  perReader: number
  confirmTtlS: number
  resetTtlS: number
  metrics: Pick<GatewayMetrics, 'mails'>
  log: FastifyBaseLogger
}

/** For whom a mail is counted, and among which. */
interface Counted {
  reader: string
  countedAs: 'mail' | 'notice'
}

export function createPost(options: PostOptions): Post {
  const { outbox, redis, queuePrefix, accountNameOf, perReader, confirmTtlS, resetTtlS, metrics, log } = options
  const countMail = createSharedCounts(redis, { windowMs: HOUR_MS })

  function lifeMsOf(kind: MailRequest['kind']): number {
    if (kind === 'notice') return NOTICE_LIFE_MS
    return (kind === 'reset' ? resetTtlS : confirmTtlS) * 1_000
  }

  async function isOverLimit({ reader, countedAs }: Counted): Promise<boolean> {
    const { count } = await countMail(`${queuePrefix}:limit:${countedAs}:${accountNameOf(accountOfEmail(reader))}`)
    return perReader > 0 && count > (countedAs === 'mail' ? perReader : Math.max(perReader, NOTICES_PER_READER))
  }

  async function add(request: MailRequest, counted: Counted): Promise<void> {
    try {
      if (await isOverLimit(counted)) return metrics.mails.inc({ outcome: 'limited' })
      await outbox.add(request, lifeMsOf(request.kind))
    } catch (error) {
      metrics.mails.inc({ outcome: 'not_queued' })
      log.warn({ err: error }, 'a mail was not queued')
    }
  }

  return {
    lifeMsOf,
    send: (request, reader) => add(request, { reader, countedAs: 'mail' }),
    notify: ({ email, isConfirmed }, notice) =>
      add({ kind: 'notice', email, notice }, { reader: email, countedAs: isConfirmed ? 'notice' : 'mail' }),
  }
}
