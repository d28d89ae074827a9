/** The outbox, the senders, the texts and SMTP. Workers have no database: gateways send mails. */
import type { Logger } from '@spillway/common/log'
import type { Database } from '@spillway/prisma'
import { openQueue } from '@spillway/queue/jobs/jobs'
import type { Keyring, RedisConnection, RedisWatch } from '@spillway/queue/queue-client'
import type { GatewayConfig } from '../config.js'
import type { CountingRedis } from '../plugins/counts.js'
import type { GatewayMetrics } from '../plugins/metrics.js'
import { parseSender } from '../schemas/email-address.js'
import { MAIL_QUEUE, Outbox } from './outbox.js'
import { Post } from './post.js'
import { MailWriter } from './requests.js'
import { MailSender } from './sender.js'
import { Smtp } from './smtp.js'
import { MailTexts } from './texts.js'

interface MailDeps {
  /** Of the role `producer`, to add mails. All connections are the caller's to watch and close. */
  redis: readonly CountingRedis[]
  /** Of the role `consumer`, to the same Redis servers in the same order, to take mails. */
  mailRedis: readonly { connection: RedisConnection }[]
  watch: RedisWatch
  keyring: Keyring
  database: Database
  currentUrl(): string
  metrics: GatewayMetrics
  log: Logger
}

export class Mail {
  readonly post: Post
  readonly #smtp: Smtp
  readonly #outbox: Outbox
  readonly #senders: readonly MailSender[]

  /** Throws one sentence when a text cannot be used. */
  constructor(config: GatewayConfig, deps: MailDeps) {
    const { redis, mailRedis, watch, keyring, database, currentUrl, metrics, log } = deps
    const { QUEUE_PREFIX: prefix, MAIL_CONFIRM_URL: confirm, MAIL_RESET_URL: reset } = config
    const from = parseSender(config.MAIL_FROM)
    if (from === undefined) throw new TypeError('MAIL_FROM was not validated')
    const writer = new MailWriter({ database, texts: new MailTexts(config.MAIL_TEXTS), links: { confirm, reset } })
    const smtp = new Smtp({ url: config.SMTP_URL, currentUrl, from })
    this.#smtp = smtp
    const places = redis.map(({ connection, isUsable, now }) => {
      const queue = openQueue({ redis: connection, prefix, name: MAIL_QUEUE, watch })
      return { queue, isUsable, now }
    })
    this.#outbox = new Outbox(places, keyring)
    this.#senders = mailRedis.map(({ connection }, place) => {
      const now = () => redis[place]?.now() ?? Date.now()
      return new MailSender({ redis: connection, prefix, now, keyring, watch, log, writer, smtp, metrics })
    })
    this.post = new Post({ config, outbox: this.#outbox, redis, keyring, metrics, log })
  }

  /** Takes no more mails, and ends once the running ones are sent. */
  async close(): Promise<void> {
    await Promise.all(this.#senders.map((sender) => sender.close()))
    this.#smtp.close()
    await this.#outbox.close()
  }
}
