// People who log in: at a rate that does not wait for answers, by tickets where they are given one, until they are in.
import { setTimeout as sleep } from 'node:timers/promises'
import { ask, redeemUntilAnswered } from '@spillway/local/testing/api-client'

export interface LoginResult {
  /** When it was asked for, and when it was done: milliseconds of performance.now(). */
  startedAt: number
  endedAt: number
  /** The status and code of the answer that ended it, where that was no success. */
  failure: string | undefined
}

export interface LoginOptions {
  url: string
  email: string
  password: string
  /** Sent as it is: respond-async asks for a ticket at once. */
  prefer?: string
}

export interface Traffic {
  /** What has ended so far, in the order of ending. */
  results: LoginResult[]
  inFlight(): number
  /** Sets another rate, in logins a second; 0 pauses. */
  setRate(perSecond: number): void
  /** Stops asking, and resolves when all that were asked for have ended. */
  close(): Promise<void>
}

/** Logs in, redeeming a ticket for as long as it takes. Never rejects. */
export async function logIn({ url, email, password, prefer }: LoginOptions): Promise<LoginResult> {
  const startedAt = performance.now()
  const headers = prefer === undefined ? {} : { prefer }
  const answer = await redeemUntilAnswered(
    await ask(url, '/v1/login', { body: { email, password }, headers, timeoutMs: PATIENCE_MS }),
    {
      redeem: (ticket) => ask(url, '/v1/tickets/redeem', { body: { ticket }, timeoutMs: PATIENCE_MS }),
      // A ticket is good until it expires, whatever happens to Redis in between.
      goesOnAfter: [202, 503],
    },
  )
  const failure = answer.status === 200 ? undefined : (answer.failure ?? `${answer.status} ${answer.body.code ?? ''}`)
  return { startedAt, endedAt: performance.now(), failure }
}

/** Of a single answer: the balancer in between is given its time as well. */
const PATIENCE_MS = 300_000
const TICK_MS = 20

/** Starts logins at a rate, evenly spread, of the accounts in turn. */
export function startTraffic(options: Omit<LoginOptions, 'email'> & { accounts: string[] }): Traffic {
  const { accounts, ...rest } = options
  const results: LoginResult[] = []
  const running = new Set<Promise<void>>()
  let rate = 0
  let due = 0
  let turn = 0
  let last = performance.now()
  const timer = setInterval(() => {
    const now = performance.now()
    due += ((now - last) / 1_000) * rate
    last = now
    for (; due >= 1; due -= 1) {
      const email = accounts[turn++ % accounts.length]
      if (email === undefined) return
      const login = logIn({ ...rest, email }).then((result) => {
        results.push(result)
        running.delete(login)
      })
      running.add(login)
    }
  }, TICK_MS)
  return {
    results,
    inFlight: () => running.size,
    setRate(perSecond) {
      rate = perSecond
    },
    async close() {
      clearInterval(timer)
      while (running.size > 0) await Promise.race([Promise.all(running), sleep(100)])
    },
  }
}
