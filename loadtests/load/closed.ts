// Closed-loop load by autocannon, for a fifth of the processor time of Node's own client. It knows
// no pause: callers that come back when told are in visit.ts.
import { setTimeout as sleep } from 'node:timers/promises'
import { TIMEOUT_MS } from '@spillway/infra/rig/api-client'
import autocannon from 'autocannon'
import { type Outcome, outcomeOf, Tally } from '../measure/tally.ts'

/** Tells one of the callers what to send, over and over. */
type Caller = (client: autocannon.Client, number: number) => void

/** A caller that logs in again and again. It redeems a ticket at once until there is a verdict. */
export function followsTickets(credentials: (number: number) => object): Caller {
  return (client, number) => {
    const login = post('/v1/login', credentials(number))
    const onResponse = (status: number, body: string) => {
      const next = status === 202 ? post('/v1/tickets/redeem', { ticket: JSON.parse(body).ticket }) : login
      client.setRequests([{ ...next, onResponse }])
    }
    client.setRequests([{ ...login, onResponse }])
  }
}

/** A caller that sends the same again and again, whatever it is told. */
export function repeats(path: string, body: (number: number) => object): Caller {
  return (client, number) => client.setRequests([post(path, body(number))])
}

function post(path: string, body: unknown): autocannon.Request {
  return { method: 'POST', path, body: JSON.stringify(body) }
}

interface ClosedLoopOptions {
  url: string
  callers: number
  caller: Caller
  /** Of all callers together [as many as are answered]. */
  perSecond?: number | undefined
  timeoutMs?: number | undefined
  /** The callers arrive in groups over this time [at once]. */
  arriveMs?: number
}

export interface Counted {
  tally: Tally
  seconds: number
  /** The slowest answer of any kind, in milliseconds. */
  slowestMs: number
}

const ARRIVAL_GROUPS = 20
/** They stay until they are sent away. */
const FOREVER_S = 86_400
/** How soon autocannon notices that it was stopped. */
const STOPS_WITHIN_MS = 50

export class ClosedLoop {
  readonly #options: ClosedLoopOptions
  readonly #running: { instance: autocannon.Instance; ended: Promise<Error | undefined> }[] = []
  /** With a ticket a caller keeps waiting: its verdict in the end took both waits. */
  readonly #waitedBefore = new WeakMap<autocannon.Client, number>()
  #counting: (Counted & { startMs: number }) | undefined
  #arrived = 0

  constructor(options: ClosedLoopOptions) {
    this.#options = options
  }

  /** Resolves when all have arrived. */
  async start(): Promise<void> {
    const { callers, arriveMs = 0 } = this.#options
    const groups = arriveMs === 0 ? 1 : Math.min(callers, ARRIVAL_GROUPS)
    for (let group = 0; group < groups; group++) {
      this.#send(Math.ceil((callers - group) / groups))
      await sleep(arriveMs / groups)
    }
  }

  /** Counts answers during this time. Requests open at its end are not counted. */
  async countFor(seconds: number): Promise<Counted> {
    const startMs = performance.now()
    const counted = { tally: new Tally(), startMs, seconds, slowestMs: 0 }
    this.#counting = counted
    await sleep(seconds * 1_000)
    this.#counting = undefined
    return { ...counted, seconds: (performance.now() - startMs) / 1_000 }
  }

  /** Sends them away. Rejects if one could not call at all. */
  async close(): Promise<void> {
    for (const { instance } of this.#running) instance.stop()
    const ends = await Promise.all(this.#running.map(({ ended }) => ended))
    const failure = ends.find((error) => error !== undefined)
    if (failure) throw failure
  }

  #send(connections: number): void {
    const { url, caller, perSecond, timeoutMs = TIMEOUT_MS } = this.#options
    let end = (_error?: Error): void => undefined
    const ended = new Promise<Error | undefined>((resolve) => {
      end = resolve
    })
    const instance = autocannon(
      {
        url,
        connections,
        duration: FOREVER_S,
        sampleInt: STOPS_WITHIN_MS,
        timeout: timeoutMs / 1_000,
        ...(perSecond !== undefined && { overallRate: perSecond }),
        headers: { 'content-type': 'application/json' },
        setupClient: (client) => caller(client, this.#arrived++),
      },
      (error) => end(error ?? undefined),
    )
    instance.on('response', (client, status, _bytes, ms) => {
      const outcome = outcomeOf({ status })
      const waitedMs = (this.#waitedBefore.get(client) ?? 0) + ms
      this.#waitedBefore.set(client, outcome === 'ticket' ? waitedMs : 0)
      this.#count(outcome, waitedMs, status)
      if (this.#counting) this.#counting.slowestMs = Math.max(this.#counting.slowestMs, ms)
    })
    instance.on('reqError', (error: Error) => {
      const isLate = error.message === 'request timed out'
      this.#count(isLate ? 'timeout' : 'error', isLate ? timeoutMs : 0)
    })
    this.#running.push({ instance, ended })
  }

  #count(outcome: Outcome, waitedMs: number, status = 0): void {
    if (this.#counting === undefined) return
    const { tally, startMs } = this.#counting
    tally.record(outcome, waitedMs, Math.floor((performance.now() - startMs) / 1_000), status)
  }
}
