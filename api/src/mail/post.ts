/** How endpoints have mail sent: a request is counted for its reader, sealed, and put into the queue; gateways send from there. */
import type { Outbox } from '@spillway/worker/mail/outbox'
import type { FastifyBaseLogger } from 'fastify'
import type { GatewayMetrics } from '../http/metrics.js'
import { accountOfEmail } from '../limits/account-name.js'
import { type CountingRedis, createSharedCounts } from '../limits/shared-counts.js'
import type { MailRequest } from './requests.js'

const HOUR_MS = 3_600_000
/** How long a mail without a link may be on its way, in milliseconds. */
const NOTICE_LIFE_MS = 24 * HOUR_MS

export interface Post {
  /**
   * Has a mail sent, unless its reader got too many within the hour; notices are always sent, because a thief would use up the others first.
   * Never rejects, and takes the same work whether there is such an account
   * or not: its caller answers the same in any case.
   *
   * @param reader the address that gets it, if anybody does
   * @param jobId of the operation, where its ticket may be redeemed at several gateways at once: one mail is sent for all
   */
  send(request: MailRequest, reader: string, jobId?: string): Promise<void>
  /** When a token expires that is made now, in epoch milliseconds. */
  expiryOf(kind: MailRequest['kind']): number
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

export function createPost(options: PostOptions): Post {
  const { outbox, redis, queuePrefix, accountNameOf, perReader, confirmTtlS, resetTtlS, metrics, log } = options
  const countMail = createSharedCounts(redis, { windowMs: HOUR_MS })

  function expiryOf(kind: MailRequest['kind']): number {
    if (kind === 'notice') return Date.now() + NOTICE_LIFE_MS
    return Date.now() + (kind === 'reset' ? resetTtlS : confirmTtlS) * 1_000
  }

  async function isOverLimit(reader: string): Promise<boolean> {
    const { count } = await countMail(`${queuePrefix}:limit:mail:${accountNameOf(accountOfEmail(reader))}`)
    return perReader > 0 && count > perReader
  }

  return {
    expiryOf,
    async send(request, reader, jobId) {
      try {
        if (request.kind !== 'notice' && (await isOverLimit(reader))) return metrics.mails.inc({ outcome: 'limited' })
        await outbox.add(request, expiryOf(request.kind), jobId)
      } catch (error) {
        metrics.mails.inc({ outcome: 'not_queued' })
        log.warn({ err: error }, 'a mail was not queued')
      }
    },
  }
}
