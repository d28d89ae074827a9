// Logins at a rate that does not depend on the answers; a ticket is redeemed until it is answered.
import { ask, redeemUntilAnswered } from '@spillway/local/rig/api-client'
import { startLoop } from '@spillway/local/rig/open-loop'
import type { ToldEta } from '@spillway/local/rig/quantile'

export interface LoginResult {
  /** Milliseconds of performance.now(). */
  startedAt: number
  endedAt: number
  /** Whether its first answer was a ticket. */
  hadTicket: boolean
  /** Those that it was told, where it is watched. */
  etas: ToldEta[]
  /** The status and code of the last answer, where that was no success. */
  failure: string | undefined
}

export interface LoginOptions {
  url: string
  email: string
  password: string
  /** The value of the header Prefer: respond-async asks for a ticket at once. */
  prefer?: string
  /**
   * Redeems its ticket without a pause, held for a second each time, so that its ETAs can be compared with the time of the answer. Any
   * other client comes back when Retry-After says so: its answer may have been there before.
   */
  isWatched?: boolean
}

/** Longer than all of the test: an answer passes through a proxy, and Redis may be away for a minute. */
const PATIENCE_MS = 300_000
/** Of the traffic, one login of so many is watched. */
const WATCHED_EVERY = 8

/** Logs in, redeeming a ticket for as long as it takes. Never rejects. */
export async function logIn(options: LoginOptions): Promise<LoginResult> {
  const { url, email, password, prefer, isWatched = false } = options
  const startedAt = performance.now()
  const headers = prefer === undefined ? {} : { prefer }
  const first = await ask(url, '/v1/login', { body: { email, password }, headers, timeoutMs: PATIENCE_MS })
  const redeeming = isWatched ? { headers: { prefer: 'wait=1' } } : {}
  const etas: Omit<ToldEta, 'answeredAtMs'>[] = []
  const answer = await redeemUntilAnswered(first, {
    pauseMs({ body: { eta }, retryAfterMs }) {
      if (!isWatched || eta === undefined) return retryAfterMs
      etas.push({ atMs: performance.now(), etaMs: eta * 1_000 })
      return 0
    },
    redeem: (ticket) => ask(url, '/v1/tickets/redeem', { body: { ticket }, ...redeeming, timeoutMs: PATIENCE_MS }),
    // A ticket is good until it expires, whatever happens to Redis in between.
    goesOnAfter: [202, 503],
  })
  const failure = answer.status === 200 ? undefined : (answer.failure ?? `${answer.status} ${answer.body.code ?? ''}`)
  const endedAt = performance.now()
  const told = etas.map((eta) => ({ ...eta, answeredAtMs: endedAt }))
  return { startedAt, endedAt, hadTicket: first.status === 202, etas: told, failure }
}

/** Starts logins of the accounts in turn, evenly spread. */
export function startTraffic(url: string, password: string, accounts: string[]) {
  const results: LoginResult[] = []
  let rate = 0
  let turn = 0
  const loop = startLoop({
    rateAt: () => rate,
    async send() {
      const isWatched = turn % WATCHED_EVERY === 0
      results.push(await logIn({ url, password, email: accounts[turn++ % accounts.length] ?? '', isWatched }))
    },
  })
  return {
    /** The logins that have ended, in the order of ending. */
    results,
    inFlight: () => turn - results.length,
    /** Sets another rate, in logins a second; 0 pauses. */
    setRate(perSecond: number) {
      rate = perSecond
    },
    /** Sends no more logins, and resolves when all that were sent have ended. */
    close: () => loop.stop(),
  }
}
