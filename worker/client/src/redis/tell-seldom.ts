/** Warnings about what may go wrong many times a second for as long as its cause lasts. */
/** Between two lines about the same. */
const TELL_EVERY_MS = 10_000

export interface Warnings {
  warn(facts: object, message: string): void
}

export interface SeldomWarning {
  /** So many more [1]: the first is told at once, the next ones together when the last line is ten seconds old. */
  tell(error: unknown, more?: { times?: number; facts?: object }): void
  /** It is over: the next one is told at once again. */
  over(): void
}

/** A warning with the message, and the reason without its stack: where it comes from is known. */
export function warnSeldom(log: Warnings, message: string, everyMs = TELL_EVERY_MS): SeldomWarning {
  let times = 0
  let toldAt = Number.NEGATIVE_INFINITY
  return {
    tell(error, { times: more = 1, facts = {} } = {}) {
      times += more
      const now = performance.now()
      if (now - toldAt < everyMs) return
      log.warn({ ...facts, ...reasonOf(error), times }, message)
      toldAt = now
      times = 0
    },
    over() {
      toldAt = Number.NEGATIVE_INFINITY
      times = 0
    },
  }
}

function reasonOf(error: unknown): { code?: string; reason: string } {
  if (!(error instanceof Error)) return { reason: 'unknown' }
  // A Cluster of which no node answers, and a name that has several addresses, say more below than above.
  const below = 'lastNodeError' in error ? error.lastNodeError : error instanceof AggregateError && error.errors[0]
  const reason = [error, below].flatMap((each) => (each instanceof Error && each.message) || []).join(' ')
  return { ...('code' in error && typeof error.code === 'string' ? { code: error.code } : {}), reason }
}
