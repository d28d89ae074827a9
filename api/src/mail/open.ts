/** Opens the outbox, the mail senders, the texts and the SMTP connection. Gateways send mail, because workers have no database. */
import type { Logger } from '@spillway/common/log'
import type { Database } from '@spillway/prisma'
import { openQueue } from '@spillway/queue/jobs/open-queue'
import type { Keyring, RedisConnection, RedisWatch } from '@spillway/queue/queue-client'
import type { GatewayConfig } from '../config.js'
import type { CountingRedis } from '../plugins/counts.js'
import { createAccountNames } from '../plugins/counts.js'
import type { GatewayMetrics } from '../plugins/metrics.js'
import { parseSender } from '../schemas/email-address.js'
import { MAIL_QUEUE, Outbox } from './outbox.js'
import { Post } from './post.js'
import { createMessages } from './requests.js'
import { MailSender } from './sender.js'
import { Smtp } from './smtp.js'
import { readTexts } from './texts.js'

/** Undefined without SMTP_URL. Throws one sentence when a text cannot be used. Closing takes no more mails, and ends once the running ones are sent. */
export function openMail(
  config: GatewayConfig,
  deps: {
    /** Of the role `producer`: mails are added by them. All connections stay the caller's to watch and to close. */
    redis: readonly CountingRedis[]
    /** Of the role `consumer`, to the same Redis in the same order: mails are taken by them. */
    mailRedis: readonly { connection: RedisConnection }[]
    watch: RedisWatch
    keyring: Keyring
    database: Database
    metrics: GatewayMetrics
    log: Logger
  },
): { post: Post; close(): Promise<void> } | undefined {
  if (config.SMTP_URL === '') return undefined
  const { redis, mailRedis, watch, keyring, database, metrics, log } = deps
  const prefix = config.QUEUE_PREFIX
  const write = readTexts(config.MAIL_TEXTS)
  const from = parseSender(config.MAIL_FROM)
  if (from === undefined) throw new TypeError('MAIL_FROM was not validated')
  const smtp = new Smtp({ url: config.SMTP_URL, from })
  const places = redis.map(({ connection, isUsable, now }) => ({
    queue: openQueue({ redis: connection, prefix, name: MAIL_QUEUE, watch }),
    isUsable,
    now,
  }))
  const outbox = new Outbox(places, keyring)
  const messageFor = createMessages({
    database,
    write,
    links: { confirmUrl: config.MAIL_CONFIRM_URL, resetUrl: config.MAIL_RESET_URL },
  })
  const senders = redis.flatMap(({ now }, place) => {
    const own = mailRedis[place]
    if (own === undefined) return []
    return new MailSender({
      ...{ redis: own.connection, prefix, now, keyring, watch, log, messageFor, smtp },
      onOutcome: (outcome) => metrics.mails.inc({ outcome }),
    })
  })
  const post = new Post({
    ...{ outbox, redis, queuePrefix: prefix, accountNameOf: createAccountNames(keyring), metrics, log },
    perReader: config.LIMIT_MAIL_PER_RECIPIENT,
    confirmTtlS: config.MAIL_CONFIRM_TTL_S,
    resetTtlS: config.MAIL_RESET_TTL_S,
  })
  return {
    post,
    async close() {
      await Promise.all(senders.map((sender) => sender.close()))
      smtp.close()
      await outbox.close()
    },
  }
}
