/** The reply channel of a gateway: subscribed to at start, and again on every new connection. */

import { ThrottledWarning } from '@spillway/common/throttled-warning'
import type { Logger } from '../logger.js'
import type { RedisConnection } from '../redis/connect.js'
import { decodeReply, replyChannel } from '../wire/reply.js'

interface RepliesOptions {
  subscriber: RedisConnection
  prefix: string
  replyTo: string
  log: Logger
  received(reply: { jobId: string; sealed: string }): void
  /** Called after each subscription: earlier replies may have been missed. */
  subscribed(): void
}

export class Replies {
  readonly #options: RepliesOptions
  readonly #refused
  #state: 'none' | 'requested' | 'confirmed' = 'none'

  constructor(options: RepliesOptions) {
    this.#options = options
    this.#refused = new ThrottledWarning(options.log, 'replies cannot be subscribed to')
    options.subscriber.on('message', (_channel: string, message: string) => {
      const reply = decodeReply(message)
      if (reply !== undefined) options.received(reply)
    })
    options.subscriber.on('ready', () => void this.#subscribe())
  }

  /** Whether replies can arrive now. */
  isSubscribed(): boolean {
    return this.#state === 'confirmed' && this.#options.subscriber.status === 'ready'
  }

  /** Sends a PING, so that the socket timeout finds a dead connection; or subscribes again. */
  check(): void {
    const { subscriber } = this.#options
    if (subscriber.status !== 'ready') return
    if (this.#state === 'confirmed') subscriber.ping().catch(() => undefined)
    else if (this.#state === 'none') void this.#subscribe()
  }

  async #subscribe(): Promise<void> {
    const { subscriber, prefix, replyTo, subscribed } = this.#options
    this.#state = 'requested'
    try {
      await subscriber.subscribe(replyChannel(prefix, replyTo))
      this.#state = 'confirmed'
      this.#refused.recovered()
    } catch (error) {
      this.#state = 'none'
      this.#refused.warn(error)
    }
    subscribed()
  }
}
