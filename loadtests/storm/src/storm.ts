// A storm: probes while it is calm, while users log in, and until it is calm again.
import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { UserError } from '@spillway/infra/processes/command-line'
import { type ApiAnswer, type ApiClient, createApiClient } from '@spillway/infra/rig/api-client'
import { closedLoop } from '@spillway/infra/rig/open-loop'
import { quantile } from '@spillway/infra/rig/quantile'
import { type Asked, Probe } from '../../measure/probe.ts'
import { beginningOf, forUser, type HttpRequest, nameOf } from './request.ts'
import { generatorOf, type Login, loginFigures, probeResult, type StormTimes } from './result.ts'
import { openTarget } from './target.ts'

export interface StormOptions {
  /** Such as `http://127.0.0.1:3000`. */
  target: string
  /** Lets it be another machine than this one. */
  beyondLoopback: boolean
  login: HttpRequest
  /** Statuses of a login that succeeded [any from 200 to 399 but 202]. */
  expect: readonly number[] | undefined
  probes: readonly HttpRequest[]
  users: number
  durationS: number
  /** How often each probe is asked in a second. */
  probesPerSecond: number
  /** What a probe may take at p99 during the storm. */
  p99Ms: number
  timeoutS: number
  calmS: number
  afterS: number
}

interface StormWatch {
  /** Ends the storm early; the result holds what was measured until then. */
  signal: AbortSignal
  progress(line: string): void
}

/** A probe works with these statuses: an error page would be quicker than the endpoint. */
const isWorking = (status: number): boolean => status >= 200 && status < 400

/** As it is written to JSON. */
export type StormResult = Awaited<ReturnType<typeof storm>>

export type ProbeResult = StormResult['probes'][number]

/** Throws a UserError where the target is not there or not allowed, or a login or probe fails. */
export async function storm(options: StormOptions, { signal, progress }: StormWatch) {
  const { target: url, beyondLoopback, login, expect, probes: requests, users, ...settings } = options
  const { durationS, calmS, afterS, timeoutS, probesPerSecond: perSecond } = settings
  // One listener for each open request.
  setMaxListeners(0, signal)
  const timeoutMs = timeoutS * 1_000
  const isExpected = (status: number) => expect?.includes(status) ?? (isWorking(status) && status !== ACCEPTED)
  const { origin, dial } = await openTarget(url, beyondLoopback)
  const clients: ApiClient[] = []
  const connect = (maxSockets = Number.POSITIVE_INFINITY) => {
    const client = createApiClient(origin, { timeoutMs, connections: { ...dial, keepAlive: true, maxSockets } })
    clients.push(client)
    return client
  }
  const ask = (client: ApiClient, { method, path, headers, body }: HttpRequest) => {
    const sent = { 'user-agent': 'spillway-storm', accept: '*/*', ...headers }
    return client.sendText(method, path, body, { headers: sent, signal, retriesStale: true })
  }
  try {
    progress('trying the login and the probes')
    const trials: Trial[] = [...new Set([1, users])].map((user) => {
      return { what: `user ${user} cannot log in`, request: forUser(login, user), isExpected }
    })
    for (const request of requests) trials.push({ what: 'a probe does not work', request, isExpected: isWorking })
    await tryAll((request) => ask(clients[0] ?? connect(), request), trials)

    const startedAt = new Date().toISOString()
    const probes = requests.map((request) => {
      const client = connect()
      const isAnswered = async () => isWorking((await ask(client, request)).status)
      return new Probe({ perSecond, timeoutMs, interrupted: signal, ask: isAnswered })
    })
    for (const probe of probes) probe.start()
    progress(`calm: probes alone, for ${calmS} s`)
    await pause(calmS * 1_000, signal)
    // One that is still open would wait for the logins, and count as slow before them.
    await Promise.all(probes.map((probe) => probe.stop()))
    const own = Array.from({ length: users }, () => connect(1))
    const logIn = (user: number) => ask(own[user - 1] ?? connect(1), forUser(login, user))
    const storming = logInRepeatedly({ users, logIn, isExpected, durationMs: durationS * 1_000 }, { signal, progress })
    for (const probe of probes) probe.start()
    const { logins, times, stormS, used } = await storming
    progress(`after: until the probes are as quick as before, for at most ${afterS} s`)
    const again = await untilCalmAgain(probes, times, afterS * 1_000, signal)
    await Promise.all(probes.map((probe) => probe.stop()))
    return {
      ...{ format: 1, startedAt, interrupted: signal.aborted, target: origin, login: nameOf(login) },
      settings: { users, ...settings },
      // How long logins began, and until the last of them had ended.
      ...{ stormS, loginsS: (times.endMs - times.startMs) / 1_000 },
      logins: loginFigures(logins, { startMs: times.startMs, stormS, timeoutMs }),
      probes: requests.map((request, index) => ({
        name: nameOf(request),
        ...probeResult(probes[index]?.asked ?? [], times),
        /** How long after the last login it was as quick as before; undefined if it was not. */
        calmAgainMs: again[index],
      })),
      generator: generatorOf(probes, times, used),
    }
  } finally {
    for (const client of clients) client.close()
  }
}

// The users: each logs in again at once, on its own connection (a closed loop). A refused user
// comes back when told, which autocannon cannot do.

/** 202: the login was accepted for later, and nobody is logged in yet. */
const ACCEPTED = 202
const COME_BACK = [ACCEPTED, 429, 503]
/** A refused user comes back when told, but within these bounds. */
const TOLD_MIN_MS = 100
export const TOLD_MAX_MS = 10_000
/** A user whose login failed or was lost tries again after this. */
export const RETRY_MS = 1_000
const PROGRESS_MS = 500

interface Users {
  users: number
  /** Of a user, from 1. */
  logIn(user: number): Promise<ApiAnswer>
  isExpected(status: number): boolean
  durationMs: number
}

/** Resolves when the last login has ended. An interruption leaves out what is open. */
async function logInRepeatedly(
  { users, logIn, isExpected, durationMs }: Users,
  { signal: interrupted, progress }: StormWatch,
) {
  const logins: Login[] = []
  const over = new AbortController()
  // One listener for each user that waits.
  setMaxListeners(0, over.signal)
  const processorTime = process.cpuUsage()
  const startMs = performance.now()
  const overMs = pause(durationMs, interrupted).then(() => {
    over.abort()
    return performance.now()
  })
  const reporting = setInterval(() => progress(`storm: ${logins.length} logins have ended`), PROGRESS_MS)
  await closedLoop({
    callers: users,
    isOver: () => over.signal.aborted,
    async call(index) {
      const beganMs = performance.now()
      const answer = await logIn(index + 1)
      if (interrupted.aborted) return
      const { status, reason } = answer
      const toldMs = COME_BACK.includes(status) ? retryAfterMsOf(answer) : undefined
      const otherwise = status === 0 ? 'lost' : toldMs === undefined ? 'other' : 'refused'
      const outcome = isExpected(status) ? 'success' : otherwise
      const tookMs = performance.now() - beganMs
      logins.push({ startMs: beganMs, tookMs, outcome, why: status === 0 ? reason : String(status) })
      if (outcome === 'refused') await pause(Math.min(Math.max(toldMs ?? 0, TOLD_MIN_MS), TOLD_MAX_MS), over.signal)
      else if (outcome !== 'success') await pause(RETRY_MS, over.signal)
    },
  })
  clearInterval(reporting)
  const stormS = ((await overMs) - startMs) / 1_000
  const times: StormTimes = { startMs, endMs: performance.now() }
  return { logins, times, stormS, used: process.cpuUsage(processorTime) }
}

/** Retry-After in milliseconds: seconds or a date (RFC 9110, 10.2.3); undefined if unreadable. */
function retryAfterMsOf({ headers: { 'retry-after': text } }: ApiAnswer): number | undefined {
  if (text === undefined) return undefined
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - Date.now()
  return Number.isNaN(ms) ? undefined : Math.max(ms, 0)
}

interface Trial {
  what: string
  request: HttpRequest
  isExpected(status: number): boolean
}

/**
 * Logs in the first user and the last, who may be missing, and asks each probe once: a mistake is
 * told in a sentence instead of thousands of errors.
 */
async function tryAll(ask: (request: HttpRequest) => Promise<ApiAnswer>, trials: readonly Trial[]): Promise<void> {
  for (const { what, request, isExpected } of trials) {
    const answer = await ask(request)
    if (!isExpected(answer.status)) throw new UserError(`Nothing was stormed: ${what}. ${said(request, answer)}`)
  }
}

/** A longer answer is not searched for what it repeats. */
const SAID_MAX = 256 * 1_024

function said(request: HttpRequest, { status, reason, text }: ApiAnswer): string {
  if (status === 0) return `${nameOf(request)} was not answered (${reason}).`
  const beginning = text.length > SAID_MAX ? '' : beginningOf(text, request)
  return `${nameOf(request)} was answered with ${status}${beginning === '' ? '.' : `: ${beginning}`}`
}

// The end of a storm: when the probes are as quick as they were before it.

/**
 * A probe is calm after this time without an answer slower than twice its first p99, and NOISE_MS.
 */
const CALM_MS = 1_000
const TIMES_P99 = 2
export const NOISE_MS = 20
const LOOK_MS = 100

/** Waits until all are calm, or for so long. Gives the times from the last login to each calm. */
async function untilCalmAgain(
  probes: readonly Probe[],
  times: StormTimes,
  atMostMs: number,
  signal: AbortSignal,
): Promise<(number | undefined)[]> {
  const slowMs = probes.map(({ asked }) => slowFrom(asked.filter(({ dueMs }) => dueMs < times.startMs)))
  for (;;) {
    const nowMs = performance.now()
    const since = probes.map((probe, index) => disturbedUntil(probe, times.endMs, slowMs[index] ?? NOISE_MS, nowMs))
    const again = since.map((ms) => (nowMs - ms >= CALM_MS ? ms - times.endMs : undefined))
    const isOver = nowMs - times.endMs >= atMostMs
    if (!again.includes(undefined) || isOver || signal.aborted) return again
    await pause(LOOK_MS, signal)
  }
}

function slowFrom(before: readonly Asked[]): number {
  const tookMs = before.map(({ tookMs }) => tookMs)
  return Math.max(TIMES_P99 * (quantile(tookMs, 0.99) ?? 0), NOISE_MS)
}

/**
 * The due time of the last request that was slow, or is open for too long; else the storm's end.
 */
function disturbedUntil({ asked, open }: Probe, endMs: number, slowMs: number, nowMs: number): number {
  const slow = asked.filter(({ dueMs, tookMs, isLost }) => dueMs >= endMs && (isLost || tookMs > slowMs))
  const waiting = [...open].filter((dueMs) => nowMs - dueMs > slowMs)
  return Math.max(endMs, ...slow.map(({ dueMs }) => dueMs), ...waiting)
}

/** Resolves after so long, or when the signal fires. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined)
}
