/** The reply channel of a gateway: subscribed to at start, and again on every new connection. */

import { ThrottledWarning } from '@spillway/common/throttled-warning'
import type { Logger } from '../logger.js'
import type { RedisConnection } from '../redis/connect.js'
import { decodeReply, replyChannel } from '../wire/reply.js'

export interface Replies {
  /** Whether replies can arrive now. */
  isSubscribed(): boolean
  /** Sends a PING, so that the socket timeout detects a connection that is dead but not closed; subscribes if that was refused. */
  check(): void
}

/** Subscribes to the replies to one address. `subscribed` is called after each subscription: earlier replies may have been missed. */
export function subscribeToReplies(options: {
  subscriber: RedisConnection
  prefix: string
  replyTo: string
  log: Logger
  received(reply: { jobId: string; sealed: string }): void
  subscribed(): void
}): Replies {
  const { subscriber, prefix, replyTo, log, received } = options
  const refused = new ThrottledWarning(log, 'replies cannot be subscribed to')
  let state: 'none' | 'requested' | 'confirmed' = 'none'
  subscriber.on('message', (_channel: string, message: string) => {
    const reply = decodeReply(message)
    if (reply !== undefined) received(reply)
  })
  async function subscribe(): Promise<void> {
    state = 'requested'
    try {
      await subscriber.subscribe(replyChannel(prefix, replyTo))
      state = 'confirmed'
      refused.recovered()
    } catch (error) {
      state = 'none'
      refused.warn(error)
    }
    options.subscribed()
  }
  subscriber.on('ready', () => void subscribe())
  return {
    isSubscribed: () => state === 'confirmed' && subscriber.status === 'ready',
    check() {
      if (subscriber.status !== 'ready') return
      if (state === 'confirmed') subscriber.ping().catch(() => undefined)
      else if (state === 'none') void subscribe()
    },
  }
}
