/**
 * Logs the state of a process's connections to Redis: a line when one fails, throttled lines with a count while that lasts, and a line
 * when all are restored.
 */

import { ThrottledWarning, type Warnings } from '@spillway/common/throttled-warning'
import { Redis } from 'ioredis'
import { MISSING_RIGHT } from '../inside/ioredis.js'
import type { RedisConnection } from './connect.js'

/** Connections count as restored when they have been ready for this long: one may break again and again. */
const STEADY_MS = 1_000

export interface RedisWatch {
  /** Logs the failures of a connection and of its duplicates: BullMQ creates one for blocking reads. */
  watch(connection: RedisConnection, name: string): void
  /** Whether an error of a watched connection has been logged: BullMQ emits those too. */
  isLogged(error: Error): boolean
  /** Logs `times` [1] errors of BullMQ, unless they are errors of a watched connection. */
  queueFailed(error: Error, times?: number): void
}

export interface WatchLog extends Warnings {
  info(facts: object, message: string): void
}

/** @param everyMs the shortest time between two lines [10 s] */
export function watchRedis(log: WatchLog, everyMs?: number): RedisWatch {
  const connections = new Set<RedisConnection>()
  const logged = new WeakSet<Error>()
  const connectionFailed = new ThrottledWarning(log, 'redis connection failed', everyMs)
  const queueFailed = new ThrottledWarning(log, 'queue error', everyMs)
  const rightMissing = new ThrottledWarning(log, 'redis user lacks a right', everyMs)
  let failedAt: number | undefined
  let timer: NodeJS.Timeout | undefined

  function failed(name: string, error: Error): void {
    logged.add(error)
    failedAt ??= performance.now()
    connectionFailed.warn(error, { facts: { connection: name } })
    checkLater()
  }

  function checkLater(): void {
    clearTimeout(timer)
    timer = setTimeout(logWhenRestored, STEADY_MS)
    timer.unref()
  }

  function logWhenRestored(): void {
    if (failedAt === undefined || connections.size === 0) return
    if (![...connections].every(({ status }) => status === 'ready')) {
      checkLater()
      return
    }
    log.info({ awayMs: Math.round(performance.now() - failedAt) }, 'redis connection is back')
    failedAt = undefined
    connectionFailed.recovered()
  }

  function watch(connection: RedisConnection, name: string): void {
    connections.add(connection)
    let hasFailed = false
    connection.on('error', (error: Error) => {
      hasFailed = true
      failed(name, error)
    })
    // A peer that accepts and closes connections, such as a proxy without a server, does not always cause an 'error'.
    connection.on('reconnecting', () => {
      if (!hasFailed) failed(name, new Error('closed by the other side'))
      hasFailed = false
    })
    connection.on('end', () => connections.delete(connection))
    const reportMissingRight = (error: Error) => rightMissing.warn(error, { facts: { connection: name } })
    if (connection instanceof Redis) connection.on(MISSING_RIGHT, reportMissingRight)
    else connection.on('+node', (node: Redis) => node.on(MISSING_RIGHT, reportMissingRight))
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
    isLogged: (error) => logged.has(error),
    queueFailed(error, times = 1) {
      if (!logged.has(error)) queueFailed.warn(error, { times })
    },
  }
}
