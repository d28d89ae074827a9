/** The channel on which a gateway's answers come: subscribed to at start, and again whenever the connection is new. */
import type { Logger } from '../logger.js'
import { decodeReply, replyChannel } from '../protocol/reply.js'
import type { RedisConnection } from '../redis/connect.js'

export interface Replies {
  /** Whether answers would be heard now. */
  isHearing(): boolean
  /** Asks for a sign of life: a connection that nobody closed but nothing comes over any more is then noticed. */
  check(): void
}

/** Hears the replies to one address. `subscribed` is told each time Redis has confirmed it: what came before was not heard. */
export function hearReplies(options: {
  subscriber: RedisConnection
  prefix: string
  replyTo: string
  log: Logger
  received(reply: { jobId: string; sealed: string }): void
  subscribed(): void
}): Replies {
  const { subscriber, prefix, replyTo, log, received } = options
  let confirmed = false
  subscriber.on('message', (_channel: string, message: string) => {
    const reply = decodeReply(message)
    if (reply !== undefined) received(reply)
  })
  subscriber.on('ready', async () => {
    try {
      await subscriber.subscribe(replyChannel(prefix, replyTo))
      confirmed = true
    } catch (error) {
      log.error({ err: error }, 'replies cannot be subscribed to')
    }
    options.subscribed()
  })
  return {
    isHearing: () => confirmed && subscriber.status === 'ready',
    check() {
      if (subscriber.status === 'ready') subscriber.ping().catch(() => undefined)
    },
  }
}
