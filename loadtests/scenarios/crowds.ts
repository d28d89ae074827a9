// Crowds: callers who ask again as soon as they are answered, and their effect on everyone else; and five thousand users at once.
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type ApiAnswer,
  type Credentials,
  createApiClient,
  redeemUntilAnswered,
  TIMEOUT_MS,
} from '@spillway/infra/rig/api-client'
import type { Running } from '../contenders/contender.ts'
import { algorithms, costOf } from '../contenders/hashing.ts'
import type { Credential } from '../load/accounts.ts'
import { type Caller, type ClosedLoopResult, loginCaller, visitCaller, withCallers } from '../load/closed.ts'
import { observe } from '../measure/observe.ts'
import { outcomeOf, Tally } from '../measure/tally.ts'
import type { Measured } from '../src/results.ts'
import { loginFigures, ofContenders, ofPipeline } from './measurements.ts'
import { picked, type Scenario, type Setting } from './scenario.ts'

const USERS = 100

function crowd(running: Running, { users = USERS, servers, durationS }: Setting, caller: Caller): Promise<Measured> {
  return withCallers({ urls: [running.url], callers: users, caller }, async (countFor) =>
    loginFigures(await observe(running, servers, () => countFor(durationS))),
  )
}

/** The NestJS post's test: a hundred users log in over and over, and the rest of the API is asked for its pulse meanwhile. */
export const login100: Scenario = {
  name: 'login-100',
  title: 'A hundred users log in',
  question: 'What do a hundred users who log in over and over get, and what does everyone else on the same API?',
  durationS: 4,
  settings: ({ users = USERS }) => ({ users, ...costOf }),
  plan: (setting) =>
    algorithms.flatMap((algorithm) => {
      const few = picked(setting, ['in-process', 'piscina', 'spillway'])
      const contenders = algorithm === 'bcrypt' ? few : setting.contenders
      return ofContenders(setting, { contenders, algorithm }, (running) =>
        crowd(running, setting, loginCaller(setting.accounts, algorithm)),
      )
    }),
}

/** The Piscina post's test: a hundred users register, log in and write. */
export const mixed100: Scenario = {
  name: 'mixed-100',
  title: 'A hundred users register, log in and write',
  question: 'What does a mix of hashing and ordinary writes get through, a hundred users at a time?',
  durationS: 3,
  settings: ({ users = USERS }) => ({ users, argon2id: costOf.argon2id }),
  plan: (setting) =>
    ofContenders(setting, { contenders: picked(setting) }, (running) =>
      crowd(running, setting, visitCaller(setting.accounts)),
    ),
}

// Five thousand users at once: how many still get an answer, and how many a second.

const MANY = 5_000

export const stress5000: Scenario = {
  name: 'stress-5000',
  title: 'Five thousand users arrive',
  question: 'When five thousand users log in at once, who gets an answer in time, and how many a second?',
  durationS: 8,
  settings: ({ users = MANY }) => ({ users, timeoutMs: TIMEOUT_MS, argon2id: costOf.argon2id }),
  plan: (setting) => [
    ...ofContenders(setting, { contenders: picked(setting), callers: setting.users ?? MANY }, (running) =>
      stress(running, setting, 'argon2id'),
    ),
    // The pipeline alone, without a hash: no contender, and marked as such.
    ...ofPipeline(setting, (running) => stress(running, setting, 'token')),
  ],
}

/** Users arrive over the first half of its duration. */
async function stress(running: Running, setting: Setting, credential: Credential): Promise<Measured> {
  const { users = MANY, durationS } = setting
  const observed = await observe(running, setting.servers, () =>
    patientLoad({
      url: running.url,
      callers: users,
      arriveMs: durationS * 500,
      durationMs: durationS * 1_000,
      credentials: (caller) => setting.accounts.login(credential, caller),
    }),
  )
  const { tally } = observed.result
  const measured = loginFigures(observed)
  return {
    ...measured,
    figures: {
      ...measured.figures,
      timeoutPercent: tally.share('timeout'),
      answeredPercent: tally.share('ok', 'ticket', 'busy'),
      deferredPercent: tally.share('ticket', 'busy'),
      peakPerSecond: Math.max(0, ...tally.bySecond.map((counts) => counts.ok)),
    },
    series: { outcomes: [{ ...tally.counts }] },
  }
}

/**
 * Callers as a good client behaves: one connection each, sent back with Retry-After they come back then, given a ticket they redeem it,
 * and with their answer they start over. autocannon knows no Retry-After and would hammer.
 */
interface PatientLoad {
  url: string
  callers: number
  /** The callers arrive one after the other over this time. */
  arriveMs: number
  /** After this nobody starts anything new; what is open is waited for, and counted. */
  durationMs: number
  credentials(caller: number): Credentials
}

/** Counts every request, a redemption with the time since the login that gave the ticket. */
async function patientLoad(load: PatientLoad): Promise<ClosedLoopResult> {
  const { url, callers, arriveMs, durationMs, credentials } = load
  const tally = new Tally()
  const client = createApiClient(url)
  const startMs = performance.now()
  const elapsedMs = () => performance.now() - startMs

  async function counted(request: Promise<ApiAnswer>, sinceMs: number): Promise<ApiAnswer> {
    const answer = await request
    tally.record(outcomeOf(answer), elapsedMs() - sinceMs, Math.floor(elapsedMs() / 1_000))
    return answer
  }

  async function call(caller: number): Promise<void> {
    await sleep((caller / callers) * arriveMs)
    while (elapsedMs() < durationMs) {
      const sentMs = elapsedMs()
      const answer = await redeemUntilAnswered(await counted(client.login(credentials(caller)), sentMs), {
        redeem: (ticket) => counted(client.redeem(ticket), sentMs),
        endMs: startMs + durationMs,
      })
      if (['busy', 'error'].includes(outcomeOf(answer))) {
        await sleep(Math.min(answer.retryAfterMs, Math.max(durationMs - elapsedMs(), 0)))
      }
    }
  }

  await Promise.all(Array.from({ length: callers }, (_, caller) => call(caller)))
  client.close()
  return { tally, seconds: elapsedMs() / 1_000 }
}
