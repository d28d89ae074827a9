// The users of a storm: each logs in again as soon as the last login was answered, on a connection of its own (a closed loop). A refused
// user comes back when told, which autocannon's connections cannot do.
import { type Connections, pause, type StormAnswer } from './ask.ts'
import { isWorking } from './probes.ts'
import { forUser, type HttpRequest } from './request.ts'

/**
 * How a login ends: as expected; refused with a time to come back (202, 429 or 503 with Retry-After); lost, without an answer; or with
 * another answer.
 */
export type Outcome = 'success' | 'refused' | 'lost' | 'other'

export interface Login {
  /** By `performance.now()`. */
  startMs: number
  tookMs: number
  outcome: Outcome
  /** What ended it: a status, or the failure. */
  why: string
}

export interface Users {
  count: number
  login: HttpRequest
  isExpected(status: number): boolean
  /** The connection of one user. */
  connect(): Connections
  /** No login begins after this; open ones are waited for. */
  over: AbortSignal
  /** What is open is left out. */
  interrupted: AbortSignal
  onLogin(login: Login): void
}

/** 202: the login was accepted for later, and nobody is logged in yet. */
const ACCEPTED = 202
const COME_BACK = [ACCEPTED, 429, 503]

/** Unless the statuses of a login that succeeded are given. */
export const isLoggedIn = (status: number): boolean => isWorking(status) && status !== ACCEPTED

/** A refused user comes back when told, but within these bounds. */
const TOLD_MIN_MS = 100
export const TOLD_MAX_MS = 10_000
/** A user whose login failed or was lost tries again after this. */
export const RETRY_MS = 1_000

/** Resolves when the last login has ended. */
export async function logInRepeatedly(users: Users): Promise<void> {
  await Promise.all(Array.from({ length: users.count }, (_, index) => logInAs(index + 1, users)))
}

async function logInAs(user: number, { login, isExpected, connect, over, interrupted, onLogin }: Users): Promise<void> {
  const request = forUser(login, user)
  const connection = connect()
  while (!over.aborted && !interrupted.aborted) {
    const startMs = performance.now()
    const answer = await connection.ask(request)
    if (interrupted.aborted) break
    const outcome = outcomeOf(answer, isExpected)
    onLogin({ startMs, tookMs: performance.now() - startMs, outcome, why: String(answer.status ?? answer.failure) })
    if (outcome === 'refused') await pause(toldMs(answer), over)
    else if (outcome !== 'success') await pause(RETRY_MS, over)
  }
  connection.close()
}

export function outcomeOf({ status, retryAfterMs }: StormAnswer, isExpected: (status: number) => boolean): Outcome {
  if (status === undefined) return 'lost'
  if (isExpected(status)) return 'success'
  return COME_BACK.includes(status) && retryAfterMs !== undefined ? 'refused' : 'other'
}

function toldMs({ retryAfterMs = 0 }: StormAnswer): number {
  return Math.min(Math.max(retryAfterMs, TOLD_MIN_MS), TOLD_MAX_MS)
}
