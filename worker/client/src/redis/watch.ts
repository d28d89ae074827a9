/**
 * What becomes of the connections of a process to Redis, in its log: one line when they fail, one now and then while that lasts,
 * with how often they did, and one when all are back.
 */
import { Redis } from 'ioredis'
import type { RedisConnection } from './connect.js'
import { type Warnings, warnSeldom } from './tell-seldom.js'

/** Connections are back when they have been ready for so long: one that breaks again and again is not. */
const STEADY_MS = 1_000

export interface RedisWatch {
  /** Tells of a connection's failures, and of those of its duplicates: BullMQ makes one, to wait for jobs on. */
  watch(connection: RedisConnection, name: string): void
  /** Whether an error is one of a watched connection: BullMQ passes those on as well. */
  isTold(error: Error): boolean
  /** Tells of an error that BullMQ has, unless that is done; of so many of them [1]. */
  queueFailed(error: Error, times?: number): void
}

export interface WatchLog extends Warnings {
  info(facts: object, message: string): void
}

/** Starts with nothing to watch. A line comes at most every so many milliseconds [10 s]. */
export function watchRedis(log: WatchLog, everyMs?: number): RedisWatch {
  const connections = new Set<RedisConnection>()
  const told = new WeakSet<Error>()
  const connectionFailed = warnSeldom(log, 'redis connection failed', everyMs)
  const queueFailed = warnSeldom(log, 'queue error', everyMs)
  let failedAt: number | undefined
  let steady: NodeJS.Timeout | undefined

  function failed(name: string, error: Error): void {
    told.add(error)
    failedAt ??= performance.now()
    connectionFailed.tell(error, { facts: { connection: name } })
    lookAgain()
  }

  function lookAgain(): void {
    clearTimeout(steady)
    steady = setTimeout(tellWhenBack, STEADY_MS)
    steady.unref()
  }

  function tellWhenBack(): void {
    if (failedAt === undefined || connections.size === 0) return
    if (![...connections].every(({ status }) => status === 'ready')) {
      lookAgain()
      return
    }
    log.info({ awayMs: Math.round(performance.now() - failedAt) }, 'redis connection is back')
    failedAt = undefined
    connectionFailed.over()
  }

  function watch(connection: RedisConnection, name: string): void {
    connections.add(connection)
    let hasFailed = false
    connection.on('error', (error: Error) => {
      hasFailed = true
      failed(name, error)
    })
    // What accepts connections and closes them, as a proxy without a server does, causes an error or none by chance.
    connection.on('reconnecting', () => {
      if (!hasFailed) failed(name, new Error('closed by the other side'))
      hasFailed = false
    })
    connection.on('end', () => connections.delete(connection))
    const watched = <T extends RedisConnection>(duplicate: T): T => {
      watch(duplicate, `${name}, duplicate`)
      return duplicate
    }
    if (connection instanceof Redis) {
      const duplicate = connection.duplicate.bind(connection)
      connection.duplicate = (...options) => watched(duplicate(...options))
    } else {
      const duplicate = connection.duplicate.bind(connection)
      connection.duplicate = (...options) => watched(duplicate(...options))
    }
  }

  return {
    watch,
    isTold: (error) => told.has(error),
    queueFailed(error, times = 1) {
      if (!told.has(error)) queueFailed.tell(error, { times })
    },
  }
}
