// One visit: a person who wants to log in, from the first request to the verdict, and what came of it.
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Answer,
  type ApiClient,
  type Credentials,
  createApiClient,
  redeemUntilAnswered,
} from '@spillway/local/testing/api-client'
import type { Accounts, Credential } from '../../load/accounts.ts'
import { outcomeOf } from '../../measure/tally.ts'

/**
 * How a visit ended. `verdict` is the right one: tokens for a right password, 401 for a wrong one. `wrong` is the other way
 * round. `refused` is a 503 or 429 with the code it must have; `lost` a ticket that came to nothing; `failed` all the rest:
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
  /** Status and code of the last answer. */
  detail: string
}

export interface Visitor {
  /** Never rejects. Visits are numbered, and each number is an account. */
  visit(number: number, dueMs?: number): Promise<Visit>
  close(): void
}

export interface VisitorOptions {
  /** Where to go: visits take turns, and one whose connection fails goes on to the next. */
  urls: readonly string[]
  accounts: Accounts
  credential: Credential
  /** Every so many visitors mistype their password; 0 for none. */
  everyNthWrong?: number
  /** Requests to begin with, before giving up on refusals and broken connections [1]. */
  tries?: number
  /** Whether Retry-After is heeded between them [true]. */
  polite?: boolean
  /** How long a ticket is gone on with, in milliseconds [90,000]. */
  patienceMs?: number
}

/** The one password that the doubles of hashes refuse. */
const WRONG_PASSWORD = 'wrong'
const RUDE_PAUSE_MS = 20

export function createVisitor(options: VisitorOptions): Visitor {
  const { urls, accounts, credential, everyNthWrong = 10, tries = 1, polite = true, patienceMs = 90_000 } = options
  const clients = urls.map((url) => createApiClient(url))

  function client(turn: number): ApiClient {
    const chosen = clients[turn % clients.length]
    if (chosen === undefined) throw new Error('a visitor needs somewhere to go')
    return chosen
  }

  /** Begins until there is an answer to keep, or no try is left. */
  async function begin(login: Credentials, turn: number): Promise<Answer> {
    for (let nth = 1; ; nth++) {
      const answer = await client(turn).login(login)
      if (nth === tries || (outcomeOf(answer) !== 'busy' && answer.status !== 0)) return answer
      if (answer.status === 0) turn++
      await sleep(polite && answer.status !== 0 ? answer.retryAfterMs : RUDE_PAUSE_MS)
    }
  }

  /** Redeems until there is a verdict. Refusals and broken connections cost a ticket nothing. */
  function redeem(first: Answer, turn: number): Promise<Answer> {
    return redeemUntilAnswered(first, {
      async redeem(ticket) {
        const answer = await client(turn).redeem(ticket)
        if (answer.status === 0) turn++
        return answer
      },
      goesOnAfter: [202, 429, 503, 0],
      pauseMs: ({ status, retryAfterMs }) => (status === 0 ? RUDE_PAUSE_MS : retryAfterMs),
      endMs: performance.now() + patienceMs,
    })
  }

  return {
    async visit(number, dueMs = performance.now()) {
      const wrong = everyNthWrong > 0 && number % everyNthWrong === everyNthWrong - 1
      const login = accounts.login(credential, number)
      const first = await begin(wrong ? { ...login, password: WRONG_PASSWORD } : login, number)
      const ticketed = first.status === 202
      const answer = ticketed ? await redeem(first, number) : first
      const tookMs = performance.now() - dueMs
      const { code } = answer.body
      const detail = answer.failure ?? `${answer.status}${code === undefined ? '' : ` ${code}`}`
      return { dueMs, tookMs, end: endOf(answer, code, wrong, ticketed), ticketed, detail }
    },
    close() {
      for (const one of clients) one.close()
    },
  }
}

function endOf({ status, text }: Answer, code: string | undefined, wrong: boolean, ticketed: boolean): End {
  if (status === 200 && text.includes('accessToken')) return wrong ? 'wrong' : 'verdict'
  if (status === 401) return wrong ? 'verdict' : 'wrong'
  if (ticketed && (status === 202 || status === 410 || status === 409)) return 'lost'
  if (status === 503 && (code === 'busy' || code === 'unavailable')) return 'refused'
  if (status === 429 && code === 'too_many_requests') return 'refused'
  return 'failed'
}
