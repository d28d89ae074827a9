/** The outbox, the senders, the texts and SMTP. Workers have no database: gateways send mails. */
import type { Logger } from '@spillway/common/log'
import type { Database } from '@spillway/prisma'
import { openQueue } from '@spillway/queue/bullmq'
import type { Keyring, RedisConnection, RedisWatch } from '@spillway/queue/client'
import type { GatewayConfig } from '../config.js'
import type { CountingRedis } from '../limits/limits.js'
import type { GatewayMetrics } from '../ops/metrics.js'
import { parseSender } from '../schemas/credentials.js'
import { MAIL_QUEUE, Outbox } from './outbox.js'
import { Post } from './post.js'
import { MailSender } from './sender.js'
import { Smtp } from './smtp.js'
import { MailTexts } from './texts.js'

export interface MailDeps {
  config: GatewayConfig
  /** Of the role `producer`, to add mails. The caller watches and closes all connections. */
  redis: CountingRedis
  /** Of the role `consumer`, to take mails. */
  mailRedis: RedisConnection
  /** Epoch milliseconds by Redis's clock. */
  now(): number
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
  readonly #sender: MailSender

  /** Throws one sentence if a text cannot be used. */
  constructor(deps: MailDeps) {
    const { config, redis, now, watch, keyring, currentUrl } = deps
    const from = parseSender(config.mailFrom)
    if (from === undefined) throw new TypeError('MAIL_FROM was not validated')
    this.#smtp = new Smtp({ currentUrl, from })
    const queue = openQueue({ redis: redis.connection, prefix: config.queuePrefix, name: MAIL_QUEUE, watch })
    this.#outbox = new Outbox(queue, keyring, now)
    this.#sender = new MailSender(deps, new MailTexts(config.mailTexts), this.#smtp)
    this.post = new Post(deps, this.#outbox)
  }

  /** Takes no more mails, and resolves when the running ones are sent or put back. */
  async close(): Promise<void> {
    await this.#sender.close()
    this.#smtp.close()
    await this.#outbox.close()
  }
}
