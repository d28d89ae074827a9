// A visit: a person logs in, from the first request to the verdict.
import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { isFar, isLost, pauseAfter, untilNear } from '@spillway/client/browser/line'
import {
  type ApiAnswer,
  type ApiClient,
  type Credentials,
  createApiClient,
  redeemUntilAnswered,
} from '@spillway/infra/rig/api-client'
import { closedLoop, openLoop } from '@spillway/infra/rig/open-loop'
import { outcomeOf } from '../measure/tally.ts'

/**
 * How a visit ended. `verdict`: tokens for a right password, 401 for a wrong one; `wrong`: the
 * other way round; `refused`: 503 or 429 with its code; `lost`: a ticket that came to nothing, or a
 * visit that was left; `failed`: all the rest.
 */
export type End = 'verdict' | 'wrong' | 'refused' | 'lost' | 'failed'

export interface Visit {
  /** When it began, by `performance.now()`. */
  dueMs: number
  tookMs: number
  end: End
  ticketed: boolean
  /** The statuses with which it was sent away before that, and came back. */
  sentAway: readonly number[]
  /** How often something had failed before that (`unavailable`), and it came back. */
  failures: number
  /** Tickets that expired or were lost, after which it logged in again. */
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
  /** Attempts to log in before a refusal, a broken connection or a lost ticket is final [1]. */
  tries?: number
  /** Whether Retry-After is heeded between them [true]. */
  polite?: boolean
  /** How long a person tries, and follows a ticket, in milliseconds [90,000]. */
  patienceMs?: number
  /** How long an answer may take, in milliseconds [10,000]. */
  timeoutMs?: number
  /** All leave: their connections, too. */
  signal?: AbortSignal
}

/** The one password that the doubles of hashes refuse. */
const WRONG_PASSWORD = 'wrong'
const RUDE_PAUSE_MS = 20
const PATIENCE_MS = 90_000

export class Visitor {
  readonly #options: VisitorOptions
  readonly #clients: readonly ApiClient[]
  readonly #leaving = new AbortController()

  constructor(options: VisitorOptions) {
    this.#options = options
    // One for each person who waits.
    setMaxListeners(0, this.#leaving.signal)
    options.signal?.addEventListener('abort', () => this.#leaving.abort(), { once: true })
    this.#clients = options.urls.map((url) => createApiClient(url, options))
  }

  /** Never rejects. Each number is an account. */
  async visit(number: number, dueMs = performance.now()): Promise<Visit> {
    const { urls, login, everyNthWrong = 10, tries = 1, polite = true, patienceMs = PATIENCE_MS } = this.#options
    const headers = this.#options.headers?.(number) ?? {}
    const leaving = this.#leaving.signal
    const sent = { headers, signal: leaving }
    const wrong = everyNthWrong > 0 && number % everyNthWrong === everyNthWrong - 1
    const credentials = { ...login(number), ...(wrong && { password: WRONG_PASSWORD }) }
    const patience = AbortSignal.timeout(patienceMs)
    const signal = AbortSignal.any([leaving, patience])
    let turn = number
    const sentAway: number[] = []
    let failures = 0

    const atNextIfBroken = async (request: (client: ApiClient) => Promise<ApiAnswer>): Promise<ApiAnswer> => {
      const client = this.#clients[turn % this.#clients.length]
      if (client === undefined) throw new Error('a visitor needs the URL of a gateway')
      const answer = await request(client)
      if (answer.status === 0) turn++
      return answer
    }

    const back = async (answer: ApiAnswer, failures?: number) =>
      await comeBack(answer, { url: urls[turn % urls.length] ?? '', headers, signal }, failures)

    async function begin(): Promise<ApiAnswer> {
      for (let nth = 1; ; nth++) {
        const answer = await atNextIfBroken((at) => at.login(credentials, sent))
        const isBusy = outcomeOf(answer) === 'busy'
        const isFailing = answer.body.code === 'unavailable'
        if (nth === tries || (!isBusy && !isFailing && answer.status !== 0)) return answer
        if (isFailing) failures++
        if (isBusy) sentAway.push(answer.status)
        const isAnother = answer.status === 0 && nth <= urls.length
        const pause = polite && !isAnother ? back(answer, nth - 1) : sleep(RUDE_PAUSE_MS)
        await pause.catch(() => undefined)
        if (signal.aborted) return answer
      }
    }

    let ticketed = false
    let ticketsLost = 0

    async function toTheEnd(): Promise<ApiAnswer> {
      const first = await begin()
      ticketed ||= first.status === 202
      // Refusals and broken connections cost a ticket nothing.
      return await redeemUntilAnswered(first, {
        redeem: (ticket) => atNextIfBroken((at) => at.redeem(ticket, sent)),
        goesOnAfter: [202, 429, 503, 0],
        comeBack: (answer) => (answer.status === 0 ? sleep(RUDE_PAUSE_MS) : back(answer)),
        signal,
      })
    }

    let answer = await toTheEnd()
    // A page still has the password, and logs in again.
    while (ticketsLost < tries - 1 && isLost(answer.body.code) && !signal.aborted) {
      ticketsLost++
      await back(answer, 0).catch(() => undefined)
      answer = await toTheEnd()
    }
    const { code } = answer.body
    const { status } = answer
    const detail = answer.failure ?? `${status}${code === undefined ? '' : ` ${code}`}`
    const end = status === 0 && leaving.aborted ? 'lost' : endOf(answer, code, wrong, ticketed)
    return { dueMs, tookMs: performance.now() - dueMs, end, ticketed, sentAway, failures, ticketsLost, status, detail }
  }

  /** Verdicts a second of callers that come again at once. Closes the visitor. */
  async perSecond(
    callers: number,
    { settlingMs, countedMs }: { settlingMs: number; countedMs: number },
  ): Promise<number> {
    const fromMs = performance.now() + settlingMs
    const untilMs = fromMs + countedMs
    let [number, counted] = [0, 0]
    setTimeout(() => this.#leaving.abort(), settlingMs + countedMs)
    await closedLoop({
      callers,
      isOver: () => performance.now() >= untilMs,
      call: async () => {
        const { end } = await this.visit(number++)
        const nowMs = performance.now()
        if (end === 'verdict' && nowMs >= fromMs && nowMs < untilMs) counted++
      },
    })
    this.close()
    return (counted * 1_000) / countedMs
  }

  close(): void {
    for (const one of this.#clients) one.close()
  }
}

function endOf({ status, text }: ApiAnswer, code: string | undefined, wrong: boolean, ticketed: boolean): End {
  if (status === 200 && text.includes('accessToken')) return wrong ? 'wrong' : 'verdict'
  if (status === 401) return wrong ? 'verdict' : 'wrong'
  if (ticketed && (status === 202 || status === 410 || status === 409)) return 'lost'
  if (status === 503 && (code === 'busy' || code === 'unavailable')) return 'refused'
  if (status === 429 && code === 'too_many_requests') return 'refused'
  return 'failed'
}

interface Arrivals {
  perSecond: number
  seconds: number
  /** Ends the arrivals early. */
  signal?: AbortSignal
  visit(number: number, dueMs: number): Promise<Visit>
}

/** People come at a steady rate. Resolves when the last is in or gone. */
export async function arrivals({ perSecond, seconds, signal, visit }: Arrivals): Promise<Visit[]> {
  const visits: Visit[] = []
  let number = 0
  await openLoop({
    rateAt: () => perSecond,
    durationMs: seconds * 1_000,
    ...(signal && { signal }),
    send: async (dueMs) => void visits.push(await visit(number++, dueMs)),
  })
  return visits
}

/** The same from now on, until it is stopped. */
export function startTraffic(options: VisitorOptions, perSecond: number) {
  const stopping = new AbortController()
  const visitor = new Visitor(options)
  const visit: Arrivals['visit'] = (number, dueMs) => visitor.visit(number, dueMs)
  const over = arrivals({ perSecond, seconds: Number.POSITIVE_INFINITY, signal: stopping.signal, visit })
  return {
    async stop(): Promise<Visit[]> {
      stopping.abort()
      const visits = await over
      visitor.close()
      return visits
    },
  }
}

// How people come back after a ticket or a refusal: by `@spillway/client/browser`, as pages do.

interface WayBack {
  url: string
  headers?: Record<string, string>
  /** Rejects with its reason. */
  signal: AbortSignal
}

/** Waits as long as the answer asks, and with a far ticket until the line has come near. */
export async function comeBack(answer: ApiAnswer, { url, headers = {}, signal }: WayBack, failures = 0): Promise<void> {
  const { status, body } = answer
  const retryAfterMs = 'retry-after' in answer.headers ? answer.retryAfterMs : undefined
  const pause = (ms: number) => sleep(ms, undefined, { signal })
  const { number, line, eta } = body
  const pauseMs = pauseAfter({ status, retryAfterMs }, failures)
  const etaAt = eta === undefined ? undefined : Date.now() + eta * 1_000
  const watches = status === 202 && isFar({ number, etaAt }, pauseMs)
  await pause(pauseMs)
  if (watches) await untilNear({ number, line }, { url: `${url}/v1/line`, headers }, signal, pause)
}
