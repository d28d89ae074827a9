// Closed-loop load: a fixed number of callers, each with a connection of its own, which send their next request when the last was
// answered.
import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Answer, type ApiClient, createApiClient, redeemUntilAnswered } from '@spillway/local/testing/api-client'
import { outcomeOf, Tally } from '../measure/tally.ts'
import type { Accounts, Credential } from './accounts.ts'

/** Sends a request and redeems its ticket, if it is given one, until there is a verdict. Every answer is counted. */
export type Send = (request: (client: ApiClient) => Promise<Answer>) => Promise<Answer>

/** The requests that a caller sends over and over. */
export type Caller = (send: Send, number: number) => Promise<unknown>

/** Logs in to an account of its own. */
export function loginCaller(accounts: Accounts, credential: Credential): Caller {
  return (send, number) => send((client) => client.login(accounts.login(credential, number)))
}

/** Registers, logs in to the new account, and writes: it ends its session. Starts over when something went wrong. */
export function visitCaller(accounts: Accounts): Caller {
  return async (send) => {
    const account = accounts.registration()
    const { status } = await send((client) => client.register(account))
    if (status !== 201) return
    const login = await send((client) => client.login(account))
    const { refreshToken } = login.body
    if (login.status === 200) await send((client) => client.post('/v1/logout', { refreshToken }))
  }
}

export interface ClosedLoop {
  /** The callers are spread over them. */
  urls: readonly string[]
  callers: number
  caller: Caller
  /** The callers arrive one after the other over this time [1 s]. */
  arriveMs?: number
  /** Whether callers heed Retry-After, as good clients do; others come back, and redeem a ticket, at once [no]. */
  patient?: boolean
}

export interface ClosedLoopResult {
  tally: Tally
  seconds: number
}

export interface Callers {
  /** Counts what is answered during this time. What is still open at its end is not counted, neither as answered nor as lost. */
  countFor(seconds: number): Promise<ClosedLoopResult>
}

const ARRIVAL_MS = 1_000

/** Lets the callers arrive, hands them over, and sends them away whatever happens. */
export async function withCallers<T>(loop: ClosedLoop, body: (callers: Callers) => Promise<T>): Promise<T> {
  const callers = startCallers(loop)
  try {
    await sleep(loop.arriveMs ?? ARRIVAL_MS)
    return await body({
      async countFor(seconds) {
        const counted = callers.count()
        await sleep(seconds * 1_000)
        return counted()
      },
    })
  } finally {
    callers.cutOff()
    await callers.leave()
  }
}

/** Counts from the first arrival. After `seconds` callers begin nothing new, and what is open is counted as well. */
export async function countFromArrival(loop: ClosedLoop, seconds: number): Promise<ClosedLoopResult> {
  const callers = startCallers(loop)
  const counted = callers.count()
  await sleep(seconds * 1_000)
  await callers.leave()
  callers.cutOff()
  return counted()
}

function startCallers({ urls, callers, caller, arriveMs = ARRIVAL_MS, patient = false }: ClosedLoop) {
  const clients = urls.map((url) => createApiClient(url))
  const leaving = new AbortController()
  const { signal } = leaving
  // One for each caller that waits.
  setMaxListeners(0, signal)
  const pause = (ms: number) => sleep(ms, undefined, { signal }).catch(() => undefined)
  let counting: { tally: Tally; startMs: number } | undefined

  /** With a ticket the caller goes on waiting: the verdict it gets in the end took the time since the first request. */
  async function counted(request: Promise<Answer>, sinceMs: number): Promise<Answer> {
    const answer = await request
    const nowMs = performance.now()
    counting?.tally.record(outcomeOf(answer), nowMs - sinceMs, Math.floor((nowMs - counting.startMs) / 1_000))
    return answer
  }

  const sendBy =
    (client: ApiClient): Send =>
    async (request) => {
      const sentMs = performance.now()
      const answer = await redeemUntilAnswered(await counted(request(client), sentMs), {
        redeem: (ticket) => counted(client.redeem(ticket), sentMs),
        signal,
        ...(!patient && { pauseMs: () => 0 }),
      })
      if (patient && ['busy', 'error'].includes(outcomeOf(answer))) await pause(answer.retryAfterMs)
      return answer
    }

  const ends = Array.from({ length: callers }, async (_, number) => {
    const client = clients[number % clients.length]
    await pause((number / callers) * arriveMs)
    while (client && !signal.aborted) await caller(sendBy(client), number)
  })

  return {
    /** Counts from now on; the function that it returns ends that and gives the result. */
    count() {
      const now = { tally: new Tally(), startMs: performance.now() }
      counting = now
      return (): ClosedLoopResult => {
        counting = undefined
        return { tally: now.tally, seconds: (performance.now() - now.startMs) / 1_000 }
      }
    },
    /** Callers begin nothing new; resolves when the last answer is in. */
    async leave() {
      leaving.abort()
      await Promise.all(ends)
    },
    /** Ends what is open. */
    cutOff() {
      leaving.abort()
      for (const client of clients) client.close()
    },
  }
}
