/**
 * Liveness of a worker means progress. A worker is dead when
 * - it could take a job and jobs wait, but it has fetched no job for a while;
 * - Redis has not answered on its connection for a while, but answers on a new one. A worker whose
 *   Redis server does not answer at all waits.
 */

/** After a longer silence of Redis no job could have been fetched. */
const SILENCE_MS = 3_000
const CHECK_INTERVAL_MS = 500

interface LivenessOptions {
  /** The limit of jobs in hand. */
  limit(): number
  /** Whether the connection to Redis counts as up; otherwise it is being replaced already. */
  isConnected(): boolean
  /** Whether Redis answers on a new connection. Never rejects. */
  redisAnswersNewConnection(): Promise<boolean>
  /** In milliseconds; longer than a blocking read and a reconnect together. */
  stuckAfterMs: number
}

export class Liveness {
  readonly #options: LivenessOptions
  readonly #now: () => number
  readonly #checking: NodeJS.Timeout
  #active = 0
  #progressAt: number
  #answeredAt: number
  /** The time without progress at the last answer of Redis. */
  #idleMs = 0
  #isCutOff = false
  #isAsking = false

  constructor(options: LivenessOptions, now = () => performance.now()) {
    this.#options = options
    this.#now = now
    this.#progressAt = now()
    this.#answeredAt = now()
    this.#checking = setInterval(() => void this.#checkConnection(), CHECK_INTERVAL_MS).unref()
  }

  started(): void {
    this.#progressed(1)
  }

  finished(): void {
    this.#progressed(-1)
  }

  /** Records an answer of Redis: `waiting` jobs can be taken. */
  redisAnswered(waiting: number): void {
    // In these cases no progress was possible.
    if (waiting === 0 || this.#active >= this.#options.limit() || this.#silentMs() > SILENCE_MS)
      this.#progressAt = this.#now()
    this.#answeredAt = this.#now()
    this.#idleMs = this.#answeredAt - this.#progressAt
    this.#isCutOff = false
  }

  /** Jobs in hand. */
  active(): number {
    return this.#active
  }

  /** Time without progress although progress was possible. */
  stuckMs(): number {
    return this.#isCutOff ? this.#silentMs() : this.#idleMs
  }

  isAlive(): boolean {
    return !this.#isCutOff && this.#idleMs < this.#options.stuckAfterMs
  }

  close(): void {
    clearInterval(this.#checking)
  }

  #progressed(change: number): void {
    this.#active += change
    this.#progressAt = this.#now()
    this.#idleMs = 0
  }

  #silentMs(): number {
    return this.#now() - this.#answeredAt
  }

  #isSilent(): boolean {
    return this.#options.isConnected() && this.#silentMs() >= this.#options.stuckAfterMs
  }

  async #checkConnection(): Promise<void> {
    // One check at a time: each opens a connection.
    if (this.#isAsking) return
    this.#isAsking = true
    if (!this.#options.isConnected()) this.#answeredAt = this.#now()
    // Silence is checked again, because Redis may have answered meanwhile.
    this.#isCutOff = this.#isSilent() && (await this.#options.redisAnswersNewConnection()) && this.#isSilent()
    this.#isAsking = false
  }
}
