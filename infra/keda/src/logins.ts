// Logins at a rate that does not depend on the answers; a ticket is redeemed until it is answered.
import { ask, redeemUntilAnswered } from '@spillway/local/testing/api-client'
import type { ToldEta } from '@spillway/local/testing/eta-errors'
import { startLoop } from '@spillway/local/testing/open-loop'

export interface LoginResult {
  /** Milliseconds of performance.now(). */
  startedAt: number
  endedAt: number
  /** Whether its first answer was a ticket. */
  hadTicket: boolean
  /** Those that it was told. */
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
}

/** Longer than all of the test: an answer passes through a proxy, and Redis may be away for a minute. */
const PATIENCE_MS = 300_000

/** Logs in, redeeming a ticket for as long as it takes. Never rejects. */
export async function logIn({ url, email, password, prefer }: LoginOptions): Promise<LoginResult> {
  const startedAt = performance.now()
  const headers = prefer === undefined ? {} : { prefer }
  const first = await ask(url, '/v1/login', { body: { email, password }, headers, timeoutMs: PATIENCE_MS })
  const etas: Omit<ToldEta, 'answeredAtMs'>[] = []
  const answer = await redeemUntilAnswered(first, {
    pauseMs({ body: { eta }, retryAfterMs }) {
      if (eta !== undefined) etas.push({ atMs: performance.now(), etaMs: eta * 1_000 })
      return retryAfterMs
    },
    redeem: (ticket) => ask(url, '/v1/tickets/redeem', { body: { ticket }, timeoutMs: PATIENCE_MS }),
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
      results.push(await logIn({ url, password, email: accounts[turn++ % accounts.length] ?? '' }))
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
