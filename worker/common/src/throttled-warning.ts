/** Throttled warnings: for errors that may repeat many times a second while their cause lasts. */

/** The interval between two log lines with the same message. */
const INTERVAL_MS = 10_000

/** Any Pino or Fastify logger fits. */
export type Logger = Record<'error' | 'warn' | 'info' | 'debug', (facts: object, message: string) => void>

/** Logs the message and code of an error under one message, without its stack. */
export class ThrottledWarning {
  readonly #log: Logger
  readonly #message: string
  #times = 0
  #loggedAt = Number.NEGATIVE_INFINITY

  constructor(log: Logger, message: string) {
    this.#log = log
    this.#message = message
  }

  /** Counts an error. The first is logged at once, later ones once an interval. */
  warn(error: unknown, facts: object = {}): void {
    this.#times += 1
    const now = performance.now()
    if (now - this.#loggedAt < INTERVAL_MS) return
    this.#log.warn({ ...facts, ...reasonOf(error), times: this.#times }, this.#message)
    this.#loggedAt = now
    this.#times = 0
  }

  /** Records that the cause is gone: the next error is logged at once. */
  recovered(): void {
    this.#loggedAt = Number.NEGATIVE_INFINITY
    this.#times = 0
  }
}

function reasonOf(error: unknown): { code?: string; reason: string } {
  if (!(error instanceof Error)) return { reason: 'unknown' }
  // The nested error is more specific where no node of a Cluster answers, or a name has several
  // addresses.
  const nested = 'lastNodeError' in error ? error.lastNodeError : error instanceof AggregateError && error.errors[0]
  const reason = [error, nested].flatMap((each) => (each instanceof Error && each.message) || []).join(' ')
  return { ...('code' in error && typeof error.code === 'string' ? { code: error.code } : {}), reason }
}
