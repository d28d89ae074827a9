/** Logs failures of the connections to Redis, throttled, and the moment when all are restored. */

import { type Logger, ThrottledWarning } from '@spillway/common/throttled-warning'
import { DUPLICATE, type RedisConnection } from './connect.js'

/** A connection counts as restored after this time: it may break again at once. */
const STEADY_MS = 1_000

export class RedisWatch {
  readonly #log: Logger
  readonly #connections = new Set<RedisConnection>()
  readonly #logged = new WeakSet<Error>()
  readonly #connectionFailed: ThrottledWarning
  readonly #queueFailed: ThrottledWarning
  #failedAt: number | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(log: Logger) {
    this.#log = log
    this.#connectionFailed = new ThrottledWarning(log, 'redis connection failed')
    this.#queueFailed = new ThrottledWarning(log, 'queue error')
  }

  /** Logs failures of a connection and of its duplicates, such as BullMQ's for blocking reads. */
  watch(connection: RedisConnection, name: string): void {
    this.#connections.add(connection)
    let hasFailed = false
    connection.on('error', (error: Error) => {
      hasFailed = true
      this.#failed(name, error)
    })
    // A peer that accepts and closes connections, such as a proxy without a server, does not always
    // cause an 'error'.
    connection.on('reconnecting', () => {
      if (!hasFailed) this.#failed(name, new Error('closed by the other side'))
      hasFailed = false
    })
    connection.on('end', () => this.#connections.delete(connection))
    connection.on(DUPLICATE, (duplicate: RedisConnection) => this.watch(duplicate, `${name}, duplicate`))
  }

  /** Logs an error of BullMQ, unless it is an error of a watched connection, which is logged already. */
  queueFailed(error: Error): void {
    if (!this.#logged.has(error)) this.#queueFailed.warn(error)
  }

  #failed(name: string, error: Error): void {
    this.#logged.add(error)
    this.#failedAt ??= performance.now()
    this.#connectionFailed.warn(error, { connection: name })
    this.#checkLater()
  }

  #checkLater(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#logWhenRestored(), STEADY_MS).unref()
  }

  #logWhenRestored(): void {
    if (this.#failedAt === undefined || this.#connections.size === 0) return
    if (![...this.#connections].every(({ status }) => status === 'ready')) {
      this.#checkLater()
      return
    }
    this.#log.info({ awayMs: Math.round(performance.now() - this.#failedAt) }, 'redis connection is back')
    this.#failedAt = undefined
    this.#connectionFailed.recovered()
  }
}
