// People who log in: at a rate that does not wait for answers, by tickets where they are given one, until they are in.
import { setTimeout as sleep } from 'node:timers/promises'

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
  const failure = await attempt().catch((error: unknown) => (error instanceof Error ? error.message : String(error)))
  return { startedAt, endedAt: performance.now(), failure }

  async function attempt(): Promise<string | undefined> {
    let answer = await post('/v1/login', { email, password }, prefer)
    const { ticket } = answer.body
    // A ticket is good until it expires, whatever happens to Redis in between.
    while (ticket !== undefined && (answer.status === 202 || answer.status === 503)) {
      await sleep((answer.body.retryAfter ?? 1) * 1_000)
      answer = await post('/v1/tickets/redeem', { ticket })
    }
    return answer.status === 200 ? undefined : `${answer.status} ${answer.body.code ?? ''}`
  }

  async function post(path: string, body: unknown, prefer?: string): Promise<{ status: number; body: Body }> {
    const response = await fetch(new URL(path, url), {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(prefer === undefined ? {} : { prefer }) },
      body: JSON.stringify(body),
    })
    const parsed: Body = JSON.parse(await response.text())
    return { status: response.status, body: parsed }
  }
}

interface Body {
  ticket?: string
  /** In seconds. */
  retryAfter?: number
  code?: string
}

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
