/**
 * Commands of one turn of the event loop reach Redis by one system call. A verdict and the word that its job is done, or what
 * many callers ask at once, are then read, run and answered together as well, and both ends wake up once. Measured: a tenth
 * of a worker's processor time for each job, a fortieth of a gateway's.
 */
import type { Redis } from 'ioredis'

/** No command waits longer than for what else is to do in its turn. */
export function gatherWrites(redis: Redis): void {
  const { sendCommand } = redis
  let gathering = false
  redis.sendCommand = (...sent) => {
    const { stream } = redis
    // There is none before the first connection, and ioredis keeps the command.
    if (!gathering && stream !== undefined) {
      gathering = true
      stream.cork()
      process.nextTick(() => {
        gathering = false
        stream.uncork()
      })
    }
    return sendCommand.apply(redis, sent)
  }
}
