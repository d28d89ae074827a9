// A visit: a person logs in, from the first request to the verdict.
import { setTimeout as sleep } from 'node:timers/promises'
import { isFar, isLost, pauseAfter, untilNear } from '@spillway/client/browser/line'
import {
  type ApiAnswer,
  type ApiClient,
  type Credentials,
  createApiClient,
  redeemUntilAnswered,
} from '@spillway/infra/rig/api-client'
import { startLoop } from '@spillway/infra/rig/open-loop'
import { outcomeOf } from '../measure/tally.ts'

/**
 * How a visit ended. `verdict` is the right one: tokens for a right password, 401 for a wrong one. `wrong` is the other way
 * round. `refused` is a 503 or 429 with the code it must have; `lost` a ticket that came to nothing, or a visit that was left; `failed` all the rest:
 * a broken connection, a time-out, any other status.
 */
export type End = 'verdict' | 'wrong' | 'refused' | 'lost' | 'failed'

export interface Visit {
  /** When it began, by `performance.now()`. */
  dueMs: number
  tookMs: number
  end: End
  /** Whether a ticket was given on the way. */
  ticketed: boolean
  /** The statuses with which it was sent away before that, and came back. */
  sentAway: readonly number[]
  /** Tickets that expired or were lost, after which it logged in again. */
  ticketsLost: number
  /** Of the last answer; 0 without one. */
  status: number
  /** Status and code of the last answer. */
  detail: string
}

export interface VisitorOptions {
  /** The gateways: visits take turns, and a visit whose connection fails continues at the next one. */
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

export type Visitor = ReturnType<typeof createVisitor>

export function createVisitor(options: VisitorOptions) {
  const { urls, login, everyNthWrong = 10, tries = 1, polite = true, patienceMs = PATIENCE_MS } = options
  const clients = urls.map((url) => createApiClient(url, options))

  function client(turn: number): ApiClient {
    const chosen = clients[turn % clients.length]
    if (chosen === undefined) throw new Error('a visitor needs the URL of a gateway')
    return chosen
  }

  return {
    /** Never rejects. Each number is an account. */
    async visit(number: number, dueMs = performance.now()): Promise<Visit> {
      const headers = options.headers?.(number) ?? {}
      const { signal: leaving } = options
      const sent = { headers, ...(leaving && { signal: leaving }) }
      const wrong = everyNthWrong > 0 && number % everyNthWrong === everyNthWrong - 1
      const credentials = { ...login(number), ...(wrong && { password: WRONG_PASSWORD }) }
      const patience = AbortSignal.timeout(patienceMs)
      const signal = leaving ? AbortSignal.any([leaving, patience]) : patience
      let turn = number
      const sentAway: number[] = []

      async function atNextIfBroken(request: (client: ApiClient) => Promise<ApiAnswer>): Promise<ApiAnswer> {
        const answer = await request(client(turn))
        if (answer.status === 0) turn++
        return answer
      }

      const back = async (answer: ApiAnswer, failures?: number) =>
        await comeBack(answer, { url: urls[turn % urls.length] ?? '', headers, signal }, failures)

      async function begin(): Promise<ApiAnswer> {
        for (let nth = 1; ; nth++) {
          const answer = await atNextIfBroken((at) => at.login(credentials, sent))
          const isBusy = outcomeOf(answer) === 'busy'
          if (nth === tries || (!isBusy && answer.status !== 0)) return answer
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
      const tookMs = performance.now() - dueMs
      const { code } = answer.body
      const detail = answer.failure ?? `${answer.status}${code === undefined ? '' : ` ${code}`}`
      return {
        dueMs,
        tookMs,
        end: answer.status === 0 && leaving?.aborted ? 'lost' : endOf(answer, code, wrong, ticketed),
        ticketed,
        sentAway,
        ticketsLost,
        status: answer.status,
        detail,
      }
    },
    close(): void {
      for (const one of clients) one.close()
    },
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

/** Visits that begin at a steady rate from now on, however the others go. */
export function startTraffic(options: VisitorOptions, perSecond: number) {
  const visitor = createVisitor(options)
  const visits: Visit[] = []
  let number = 0
  const loop = startLoop({
    rateAt: () => perSecond,
    send: async (dueMs) => {
      visits.push(await visitor.visit(number++, dueMs))
    },
  })
  return {
    /** No more begin; resolves with all, in the order in which they ended. */
    async stop() {
      await loop.stop()
      visitor.close()
      return visits
    },
  }
}

// How a person of a load test comes back, with a ticket or after a refusal. The code of `@spillway/client/browser` decides, as in pages.

interface WayBack {
  /** Of the gateway. */
  url: string
  headers?: Record<string, string>
  /** Rejects with its reason. */
  signal: AbortSignal
}

/** Waits as long as the answer asks, and with a ticket whose turn is far until the line has come near. */
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
