/**
 * Makes unrequested bytes from Redis end the connection instead of the process: ioredis 6.0 throws for some of them in a tick of its own,
 * where the error cannot be caught. Remove this file once ioredis is fixed.
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
