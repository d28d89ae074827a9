// A visit: a person logs in, comes back as told, and redeems a ticket, until there is a result.
import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ApiAnswer, type ApiClient, type Credentials, createApiClient } from '@spillway/infra/harness/api-client'
import { closedLoop, openLoop } from './open-loop.ts'

/**
 * How a visit ended. `answered`: tokens for a right password, 401 for a wrong one; `wrong`: the
 * other way round; `refused`: 503 or 429 with its code; `lost`: a ticket that ended without a
 * result, or a visit that was left; `failed`: all the rest.
 */
export type End = 'answered' | 'wrong' | 'refused' | 'lost' | 'failed'

export interface Visit {
  /** When it began, by `performance.now()`. */
  dueMs: number
  tookMs: number
  end: End
  ticketed: boolean
  /** How often it was refused before that, and came back. */
  refusals: number
  /** How often something had failed before that (`unavailable`, no answer), and it came back. */
  failures: number
  /** Tickets that ended without a result, after which it logged in again. */
  ticketsLost: number
  /** Of the last answer; 0 without one. */
  status: number
  detail: string
}

export interface VisitorOptions {
  /** The gateways take turns. A visit whose connection fails continues at the next one. */
  urls: readonly string[]
  login(number: number): Credentials
  headers?(number: number): Record<string, string>
  /** One of so many visitors mistypes the password [10]; 0 for no visitor. */
  everyNthWrong?: number
  /** Logins before a refusal, a failure or the end of a ticket is final [1]. */
  tries?: number
  /** The pause before each request [what Retry-After asks for]. */
  pauseMs?: number
  /** How long a person tries, and redeems a ticket, in milliseconds [90,000]. */
  patienceMs?: number
  /** How long an answer may take, in milliseconds [10,000]. */
  timeoutMs?: number
  /** All leave: their connections, too. */
  signal?: AbortSignal
}

/** The one password that the doubles of hashes refuse. */
const WRONG_PASSWORD = 'wrong'
/** After a connection that failed. */
const BROKEN_PAUSE_MS = 20
const PATIENCE_MS = 90_000
/** Of a redemption: the ticket is of no more use. */
const TICKET_GONE = [400, 409, 410]

export class Visitor {
  readonly #options: VisitorOptions
  readonly #clients: readonly ApiClient[]
  readonly #leaving = new AbortController()

  constructor(options: VisitorOptions) {
    this.#options = options
    // One for each person who waits.
    setMaxListeners(0, this.#leaving.signal)
    options.signal?.addEventListener('abort', () => this.leave(), { once: true })
    this.#clients = options.urls.map((url) => createApiClient(url, options))
  }

  /** Never rejects. Each number is an account. */
  async visit(number: number, dueMs = performance.now()): Promise<Visit> {
    const { login, headers, everyNthWrong = 10, tries = 1, patienceMs = PATIENCE_MS } = this.#options
    const isWrong = everyNthWrong > 0 && number % everyNthWrong === everyNthWrong - 1
    const credentials = login(number)
    if (isWrong) credentials.password = WRONG_PASSWORD
    const sent = { headers: headers?.(number) ?? {}, signal: this.#leaving.signal, retriesStale: true }
    const over = AbortSignal.any([this.#leaving.signal, AbortSignal.timeout(patienceMs)])
    const visit = { ticketed: false, refusals: 0, failures: 0, ticketsLost: 0 }
    let [turn, logins] = [number, 0]
    let ticket: string | undefined
    let answer: ApiAnswer

    for (;;) {
      const client = this.#clients[turn % this.#clients.length]
      if (client === undefined) throw new Error('a visitor needs the URL of a gateway')
      if (ticket === undefined) logins++
      answer = ticket === undefined ? await client.login(credentials, sent) : await client.redeem(ticket, sent)
      const { status, body } = answer
      if (over.aborted) break
      if (status === 0) turn++
      if (status === 202) {
        visit.ticketed = true
        // A new one each time, with the place that its request has now.
        ticket = body.ticket ?? ticket
      } else if (status === 0 || status === 429 || status === 503) {
        if (ticket === undefined && logins === tries) break
        if (status === 0 || body.code === 'unavailable') visit.failures++
        else visit.refusals++
      } else if (ticket !== undefined && TICKET_GONE.includes(status) && logins < tries) {
        visit.ticketsLost++
        ticket = undefined
      } else break
      const pauseMs = status === 0 ? BROKEN_PAUSE_MS : (this.#options.pauseMs ?? answer.retryAfterMs)
      await sleep(pauseMs, undefined, { signal: over }).catch(() => undefined)
    }
    const { code } = answer.body
    const { status } = answer
    const end = status === 0 && over.aborted ? 'lost' : endOf(answer, isWrong, visit.ticketed)
    const detail = answer.failure ?? `${status}${code === undefined ? '' : ` ${code}`}`
    return { dueMs, tookMs: performance.now() - dueMs, end, ...visit, status, detail }
  }

  /** Results a second of callers who come again at once. */
  async perSecond(callers: number, { settlingMs, countedMs }: { settlingMs: number; countedMs: number }) {
    const fromMs = performance.now() + settlingMs
    const untilMs = fromMs + countedMs
    let [number, counted] = [0, 0]
    const timer = setTimeout(() => this.leave(), settlingMs + countedMs)
    await closedLoop({
      callers,
      isOver: () => performance.now() >= untilMs,
      call: async () => {
        const { end } = await this.visit(number++)
        const nowMs = performance.now()
        if (end === 'answered' && nowMs >= fromMs && nowMs < untilMs) counted++
      },
    })
    clearTimeout(timer)
    this.leave()
    return (counted * 1_000) / countedMs
  }

  /** Ends all visits, and the connections. */
  leave(): void {
    this.#leaving.abort()
    for (const one of this.#clients) one.close()
  }
}

function endOf({ status, text, body: { code } }: ApiAnswer, isWrong: boolean, ticketed: boolean): End {
  if (status === 200 && text.includes('accessToken')) return isWrong ? 'wrong' : 'answered'
  if (status === 401) return isWrong ? 'answered' : 'wrong'
  if (ticketed && (status === 202 || TICKET_GONE.includes(status))) return 'lost'
  if (status === 503 && (code === 'busy' || code === 'unavailable')) return 'refused'
  if (status === 429 && code === 'too_many_requests') return 'refused'
  return 'failed'
}

interface Arrivals {
  perSecond: number
  seconds: number
  /** Ends the arrivals early. */
  signal?: AbortSignal
  /** Grows as they end. */
  visits?: Visit[]
}

/** People come at a steady rate. Resolves when the last is in or gone. */
export async function arrivals(people: Visitor, arriving: Arrivals): Promise<Visit[]> {
  const { perSecond, seconds, signal, visits = [] } = arriving
  let number = 0
  await openLoop({
    rateAt: () => perSecond,
    durationMs: seconds * 1_000,
    ...(signal && { signal }),
    send: async (dueMs) => void visits.push(await people.visit(number++, dueMs)),
  })
  people.leave()
  return visits
}

/** The same from now on, until it is stopped. */
export function startTraffic(options: VisitorOptions, perSecond: number) {
  const stopping = new AbortController()
  const over = arrivals(new Visitor(options), {
    perSecond,
    seconds: Number.POSITIVE_INFINITY,
    signal: stopping.signal,
  })
  return {
    async stop(): Promise<Visit[]> {
      stopping.abort()
      return await over
    },
  }
}
