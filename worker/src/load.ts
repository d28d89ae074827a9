/** The state of the queue, read a few times a second, and what it says about the wait of a job that is added now. */
import type { RedisClock } from './clock.js'
import type { Logger } from './log.js'
import { capacityKey, type Load, queueKey, READ_LOAD, sumCapacity, toEntries } from './protocol/capacity.js'
import type { RedisConnection } from './redis.js'

export const READ_INTERVAL_MS = 250

const NOTHING_KNOWN: Load = { workers: 0, slots: 0, jobsPerSecond: 0, serviceMs: 0, waiting: 0, active: 0 }

export interface LoadReader {
  current(): Load
  /** A job was added here since the last reading: it counts at once, not a quarter of a second later. */
  added(): void
  /** Milliseconds until a job added now would be answered; Infinity when no worker is alive. */
  predictedWaitMs(): number
  close(): void
}

export function readLoad(options: {
  redis: RedisConnection
  prefix: string
  clock: RedisClock
  log: Logger
}): LoadReader {
  const { redis, prefix, clock, log } = options
  const keys = [capacityKey(prefix), queueKey(prefix, 'wait'), queueKey(prefix, 'active')]
  let load = NOTHING_KNOWN
  let addedSince = 0
  let reading = false

  async function read(): Promise<void> {
    if (reading) return
    reading = true
    try {
      const addedBefore = addedSince
      const { at, waiting, active, capacity } = await clock.synchronize(
        async () => parseLoad(await redis.eval(READ_LOAD, keys.length, ...keys)),
        (answer) => answer.at,
      )
      load = { waiting, active, ...sumCapacity(capacity, at) }
      addedSince -= addedBefore
    } catch (error) {
      // What is not known for sure counts as gone; the next reading is a quarter of a second away.
      load = { ...load, workers: 0, slots: 0, jobsPerSecond: 0, serviceMs: 0 }
      log.debug({ err: error }, 'queue load could not be read')
    } finally {
      reading = false
    }
  }

  const timer = setInterval(read, READ_INTERVAL_MS)
  timer.unref()
  void read()

  return {
    current: () => ({ ...load, waiting: load.waiting + addedSince }),
    added() {
      addedSince += 1
    },
    predictedWaitMs() {
      const ahead = load.waiting + addedSince + load.active
      if (load.jobsPerSecond === 0) return Number.POSITIVE_INFINITY
      return Math.max(load.serviceMs, ((ahead + 1) * 1_000) / load.jobsPerSecond)
    },
    close: () => clearInterval(timer),
  }
}

interface LoadAnswer {
  at: number
  waiting: number
  active: number
  capacity: Record<string, string>
}

function parseLoad(answer: unknown): LoadAnswer {
  if (!Array.isArray(answer)) throw new Error('Redis gave no load')
  const [at, waiting, active, pairs]: unknown[] = answer
  return { at: Number(at), waiting: Number(waiting), active: Number(active), capacity: toEntries(pairs) }
}
