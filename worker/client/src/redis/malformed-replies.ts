/**
 * Bytes from Redis that no command asked for end the connection, and not the process: ioredis 6.0 throws for some of them in a tick of its
 * own, where nobody can catch it. To be removed when it does not any more; the test says so.
 */
import handler from 'ioredis/built/DataHandler.js'

interface Handler {
  /** Rejects what waits for an answer, and connects again. */
  returnFatalError(error: unknown): void
}

function dispatch(this: Handler, take: () => void): void {
  try {
    take()
  } catch (error) {
    this.returnFatalError(error)
  }
}

/** Once for the process. */
export function endConnectionsByMalformedReplies(): void {
  Object.defineProperty(handler.default.prototype, 'dispatch', { value: dispatch })
}
