// Closed-loop load by autocannon: a fixed number of callers, each sending its next request when the last was answered.
import { setTimeout as sleep } from 'node:timers/promises'
import { TIMEOUT_MS } from '@spillway/infra/rig/api-client'
import autocannon from 'autocannon'
import { type Outcome, outcomeOf, Tally } from '../measure/tally.ts'
import type { Accounts, Credential } from './accounts.ts'

/** Tells one of autocannon's callers what to send, over and over. */
export type Caller = (client: autocannon.Client, number: number) => void

/** Logs in to an account of its own. */
export function loginCaller(accounts: Accounts, credential: Credential): Caller {
  return (client, number) => {
    const login = post('/v1/login', accounts.login(credential, number))
    converse(client, login, () => login)
  }
}

/** Registers, logs in to the new account, and writes: it ends its session. Starts over when something went wrong. */
export function visitCaller(accounts: Accounts): Caller {
  return (client) => {
    let account = accounts.registration()
    const register = () => {
      account = accounts.registration()
      return post('/v1/users', account)
    }
    converse(client, post('/v1/users', account), (status, body) => {
      if (status === 201) return post('/v1/login', account)
      if (status === 200) return post('/v1/logout', { refreshToken: JSON.parse(body).refreshToken })
      return register()
    })
  }
}

/**
 * Sends a request, and after each answer the next one. A ticket is redeemed until there is a verdict, at once each time: a
 * redeem is held by the gateway as the call before it was.
 */
function converse(
  client: autocannon.Client,
  first: autocannon.Request,
  next: (status: number, body: string) => autocannon.Request,
): void {
  const onResponse = (status: number, body: string) => {
    const request =
      status === 202 ? post('/v1/tickets/redeem', { ticket: JSON.parse(body).ticket }) : next(status, body)
    client.setRequests([{ ...request, onResponse }])
  }
  client.setRequests([{ ...first, onResponse }])
}

function post(path: string, body: unknown): autocannon.Request {
  return { method: 'POST', path, body: JSON.stringify(body) }
}

interface ClosedLoop {
  /** The callers are spread over them. */
  urls: readonly string[]
  callers: number
  caller: Caller
}

export interface ClosedLoopResult {
  tally: Tally
  seconds: number
}

/** Counts what is answered during this time. What is still open at its end is not counted, neither as answered nor as lost. */
type CountFor = (seconds: number) => Promise<ClosedLoopResult>

/** The callers do not all arrive in the same millisecond, but in so many groups over this time. */
const ARRIVAL_MS = 1_000
const ARRIVAL_GROUPS = 20
/** They stay until they are sent away. */
const FOREVER_S = 86_400
/** How soon autocannon notices that it was stopped. */
const STOPS_WITHIN_MS = 50

/** Lets the callers arrive, has them counted by the body, and sends them away whatever happens. */
export async function withCallers<T>(
  { urls, callers, caller }: ClosedLoop,
  body: (countFor: CountFor) => Promise<T>,
): Promise<T> {
  const waitedBefore = new WeakMap<autocannon.Client, number>()
  const attacks: autocannon.Instance[] = []
  const ends: Promise<Error | undefined>[] = []
  let counting: { tally: Tally; startMs: number } | undefined
  let arrived = 0

  function count(outcome: Outcome, waitedMs: number): void {
    counting?.tally.record(outcome, waitedMs, Math.floor((performance.now() - counting.startMs) / 1_000))
  }

  function attack(url: string, share: number): Promise<Error | undefined> {
    return new Promise((resolve) => {
      const run = autocannon(
        {
          url,
          connections: share,
          duration: FOREVER_S,
          sampleInt: STOPS_WITHIN_MS,
          timeout: TIMEOUT_MS / 1_000,
          headers: { 'content-type': 'application/json' },
          setupClient: (client) => caller(client, arrived++),
        },
        (error) => resolve(error ?? undefined),
      )
      run.on('response', (client, status, _bytes, ms) => {
        const outcome = outcomeOf({ status })
        const waitedMs = (waitedBefore.get(client) ?? 0) + ms
        // With a ticket the caller keeps waiting: its verdict in the end took both waits.
        waitedBefore.set(client, outcome === 'ticket' ? waitedMs : 0)
        count(outcome, waitedMs)
      })
      run.on('reqError', (error: Error) => {
        const timedOut = error.message === 'request timed out'
        count(timedOut ? 'timeout' : 'error', timedOut ? TIMEOUT_MS : 0)
      })
      attacks.push(run)
    })
  }

  async function countFor(seconds: number): Promise<ClosedLoopResult> {
    const tally = new Tally()
    const startMs = performance.now()
    counting = { tally, startMs }
    await sleep(seconds * 1_000)
    counting = undefined
    return { tally, seconds: (performance.now() - startMs) / 1_000 }
  }

  const groups = Math.min(callers, Math.max(ARRIVAL_GROUPS, urls.length))
  let result: T
  try {
    for (let group = 0; group < groups; group++) {
      ends.push(attack(urls[group % urls.length] ?? '', Math.ceil((callers - group) / groups)))
      await sleep(ARRIVAL_MS / groups)
    }
    result = await body(countFor)
  } finally {
    for (const attack of attacks) attack.stop()
    await Promise.all(ends)
  }
  const failure = (await Promise.all(ends)).find((error) => error !== undefined)
  if (failure) throw failure
  return result
}
