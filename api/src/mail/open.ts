/** Opens the outbox, the senders, the texts and SMTP. Workers have no database: gateways send. */
import type { Logger } from '@spillway/common/log'
import type { Database } from '@spillway/prisma'
import { openQueue } from '@spillway/queue/jobs/open-queue'
import type { Keyring, RedisConnection, RedisWatch } from '@spillway/queue/queue-client'
import type { GatewayConfig } from '../config.js'
import { type CountingRedis, createAccountNames } from '../plugins/counts.js'
import type { GatewayMetrics } from '../plugins/metrics.js'
import { parseSender } from '../schemas/email-address.js'
import { MAIL_QUEUE, Outbox } from './outbox.js'
import { Post } from './post.js'
import { MailWriter } from './requests.js'
import { MailSender } from './sender.js'
import { Smtp } from './smtp.js'
import { readTexts } from './texts.js'

interface MailDeps {
  /**
   * Of the role `producer`, to add mails. All connections stay the caller's to watch and to close.
   */
  redis: readonly CountingRedis[]
  /** Of the role `consumer`, to the same Redis servers in the same order, to take mails. */
  mailRedis: readonly { connection: RedisConnection }[]
  watch: RedisWatch
  keyring: Keyring
  database: Database
  metrics: GatewayMetrics
  log: Logger
}

/**
 * Undefined without SMTP_URL. Throws one sentence when a text cannot be used. Closing takes no more
 * mails, and ends once the running ones are sent.
 */
export function openMail(config: GatewayConfig, deps: MailDeps): { post: Post; close(): Promise<void> } | undefined {
  if (config.SMTP_URL === '') return undefined
  const { redis, mailRedis, watch, keyring, database, metrics, log } = deps
  const { QUEUE_PREFIX: prefix, MAIL_CONFIRM_URL: confirm, MAIL_RESET_URL: reset } = config
  const from = parseSender(config.MAIL_FROM)
  if (from === undefined) throw new TypeError('MAIL_FROM was not validated')
  const writer = new MailWriter({ database, write: readTexts(config.MAIL_TEXTS), links: { confirm, reset } })
  const smtp = new Smtp({ url: config.SMTP_URL, from })
  const places = redis.map(({ connection, isUsable, now }) => {
    const queue = openQueue({ redis: connection, prefix, name: MAIL_QUEUE, watch })
    return { queue, isUsable, now }
  })
  const outbox = new Outbox(places, keyring)
  const senders = mailRedis.map(({ connection }, place) => {
    const now = () => redis[place]?.now() ?? Date.now()
    return new MailSender({ redis: connection, prefix, now, keyring, watch, log, writer, smtp, metrics })
  })
  return {
    post: new Post({ config, outbox, redis, accountNameOf: createAccountNames(keyring), metrics, log }),
    async close() {
      await Promise.all(senders.map((sender) => sender.close()))
      smtp.close()
      await outbox.close()
    },
  }
}
