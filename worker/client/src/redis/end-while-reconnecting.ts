/**
 * Makes disconnect() end a connection that waits to reconnect. ioredis 6.0 only closes its socket, and while it waits there is none: the
 * connection never emits `end`, and its commands stay unanswered, so that a consumer of BullMQ's cannot be closed. Remove this file once
 * ioredis is fixed (redis/ioredis#2169).
 */
import { Cluster, Redis } from 'ioredis'

interface Connection {
  status: string
  /** The commands in flight when the connection broke, which are to be sent again. A Cluster has none. */
  prevCommandQueue?: { shift(): { command: { reject(error: Error): void } } | undefined } | null
}

type Disconnect = (this: Connection, reconnect?: boolean) => void

function endingWhileReconnecting(disconnect: Disconnect): Disconnect {
  return function (reconnect = false) {
    if (reconnect || this.status !== 'reconnecting') return disconnect.call(this, reconnect)
    // The status of a connection that was never opened: ioredis then does itself what it does when a socket closes.
    this.status = 'wait'
    disconnect.call(this)
    while (true) {
      const sent = this.prevCommandQueue?.shift()
      if (sent === undefined) return
      // The error of ioredis for commands of a connection that has ended: BullMQ knows it by its message.
      sent.command.reject(new Error('Connection is closed.'))
    }
  }
}

/** Once for the process: BullMQ opens further connections of the same class. */
export function endConnectionsThatReconnect(): void {
  for (const { prototype } of [Redis, Cluster]) {
    Object.defineProperty(prototype, 'disconnect', { value: endingWhileReconnecting(prototype.disconnect) })
  }
}
