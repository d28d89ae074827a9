/** Throttled warnings: for errors that may repeat many times a second while their cause lasts. */

/** Between two log lines with the same message. */
const INTERVAL_MS = 10_000

export interface Warnings {
  warn(facts: object, message: string): void
}

export interface ThrottledWarning {
  /** Counts `times` [1] errors. The first is logged at once, later ones together, at most one line an interval. */
  warn(error: unknown, more?: { times?: number; facts?: object }): void
  /** The cause is gone: the next error is logged at once. */
  recovered(): void
}

/** Creates a warning with this message. It logs the error's message and code without the stack. */
export function throttledWarning(log: Warnings, message: string, everyMs = INTERVAL_MS): ThrottledWarning {
  let times = 0
  let loggedAt = Number.NEGATIVE_INFINITY
  return {
    warn(error, { times: more = 1, facts = {} } = {}) {
      times += more
      const now = performance.now()
      if (now - loggedAt < everyMs) return
      log.warn({ ...facts, ...reasonOf(error), times }, message)
      loggedAt = now
      times = 0
    },
    recovered() {
      loggedAt = Number.NEGATIVE_INFINITY
      times = 0
    },
  }
}

function reasonOf(error: unknown): { code?: string; reason: string } {
  if (!(error instanceof Error)) return { reason: 'unknown' }
  // When no node of a Cluster answers, or a name has several addresses, the nested error is more specific.
  const nested = 'lastNodeError' in error ? error.lastNodeError : error instanceof AggregateError && error.errors[0]
  const reason = [error, nested].flatMap((each) => (each instanceof Error && each.message) || []).join(' ')
  return { ...('code' in error && typeof error.code === 'string' ? { code: error.code } : {}), reason }
}
