// Closed-loop load by autocannon, for a fifth of the processor time of Node's own client. It knows
// no pause: callers who come back when told are in visit.ts.
import { setTimeout as sleep } from 'node:timers/promises'
import { TIMEOUT_MS } from '@spillway/infra/harness/api-client'
import autocannon from 'autocannon'
import { outcomeOf, Tally } from '../measure/tally.ts'

/** Tells one of the callers what to send, over and over. */
export type Caller = (client: autocannon.Client, number: number) => void

/**
 * A caller that logs in again and again. It redeems a ticket at once until there is a result.
 *
 * @param headers of logins [none]
 */
export function followsTickets(credentials: (number: number) => object, headers = {}): Caller {
  return (client, number) => {
    const login = { ...post('/v1/login', credentials(number)), headers }
    const onResponse = (status: number, body: string) => {
      const next = status === 202 ? post('/v1/tickets/redeem', { ticket: JSON.parse(body).ticket }) : login
      client.setRequests([{ ...next, onResponse }])
    }
    client.setRequests([{ ...login, onResponse }])
  }
}

/** A caller that logs in again at once, whatever it is told. */
export function repeats(credentials: (number: number) => object): Caller {
  return (client, number) => client.setRequests([post('/v1/login', credentials(number))])
}

function post(path: string, body: unknown): autocannon.Request {
  return { method: 'POST', path, body: JSON.stringify(body) }
}

interface ClosedLoad {
  url: string
  callers: number
  caller: Caller
  /** Of all callers together [as many as are answered]. */
  perSecond?: number | undefined
  /** Answers are counted after this time, for that time. */
  settlingS: number
  countedS: number
  /** Called when counting begins, and when it ends; awaited while the load goes on. */
  onCounting?(): void | Promise<void>
  onCounted?(): Promise<void>
}

/** They stay until they are sent away. */
const FOREVER_S = 86_400
/** How soon autocannon notices that it was stopped. */
const STOPS_WITHIN_MS = 50

/** Requests that are open at the end are not counted. Rejects if nobody could call at all. */
export async function closedLoad(load: ClosedLoad): Promise<{ tally: Tally; seconds: number }> {
  const { url, callers, caller, perSecond, settlingS, countedS } = load
  const tally = new Tally()
  let [isCounting, called] = [false, 0]
  /** With a ticket a caller keeps waiting: its result in the end took both waits. */
  const waitedBefore = new WeakMap<autocannon.Client, number>()
  const options = {
    url,
    connections: callers,
    duration: FOREVER_S,
    sampleInt: STOPS_WITHIN_MS,
    timeout: TIMEOUT_MS / 1_000,
    ...(perSecond !== undefined && { overallRate: perSecond }),
    headers: { 'content-type': 'application/json' },
    setupClient: (client: autocannon.Client) => caller(client, called++),
  }
  let end: (error?: unknown) => void = () => undefined
  const ended = new Promise((resolve) => {
    end = resolve
  })
  const instance = autocannon(options, (error) => end(error))
  instance.on('response', (client, status, _bytes, ms) => {
    const outcome = outcomeOf({ status })
    const waitedMs = (waitedBefore.get(client) ?? 0) + ms
    waitedBefore.set(client, outcome === 'ticket' ? waitedMs : 0)
    if (isCounting) tally.record(outcome, waitedMs)
  })
  instance.on('reqError', (error: Error) => {
    if (!isCounting) return
    if (error.message === 'request timed out') tally.record('timeout', TIMEOUT_MS)
    else tally.record('error', 0)
  })
  await sleep(settlingS * 1_000)
  await load.onCounting?.()
  isCounting = true
  const startMs = performance.now()
  await sleep(countedS * 1_000)
  isCounting = false
  const seconds = (performance.now() - startMs) / 1_000
  await load.onCounted?.()
  instance.stop()
  const failure = await ended
  if (failure) throw failure
  return { tally, seconds }
}
