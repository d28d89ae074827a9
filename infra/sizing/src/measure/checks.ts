// Waits and a spike on the real gateway, queue and worker, which the guide compares with the model.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Keeper } from '@spillway/infra/processes/keeper'
import { openSpillway, type TestProcess, until } from '@spillway/infra/rig'
import { type ApiClient, createApiClient } from '@spillway/infra/rig/api-client'
import { quantile } from '@spillway/infra/rig/quantile'
import { startOwnServices } from '@spillway/infra/rig/services'
import { createAccounts } from '@spillway/infra/services/query'
import type { SpikeCheck, WaitCheck } from '../figures.ts'

/** Hashes that wait without using a processor, so that a machine with few of them can stand for many. */
export const STAND_IN_MS = 50
export const SLOTS = 4

const WAITS_S = 60

/** Accounts with such hashes. */
export function standIns(system: MeasuredSystem): Promise<string[]> {
  return system.accounts('stand-in', 500, `$spillway-wait$${STAND_IN_MS}$`)
}

/** Waits at several rates. */
export async function checkWaits(
  system: MeasuredSystem,
  emails: string[],
  turnaroundMs: number,
  say: (line: string) => void,
): Promise<WaitCheck[]> {
  const checks: WaitCheck[] = []
  for (const busy of [0.5, 0.75, 0.9]) {
    const meant = (busy * SLOTS * 1_000) / (STAND_IN_MS + turnaroundMs)
    const jobs = await logInAtRate(system, emails, { perSecond: () => meant, forS: WAITS_S })
    const station = { perSecond: jobs.length / WAITS_S, slotMs: STAND_IN_MS + turnaroundMs, slots: SLOTS }
    const waits = jobs.map(waitMs)
    const waitOf = (share: number) => quantile(waits, share) ?? Number.NaN
    const check = {
      ...station,
      logins: jobs.length,
      measuredMs: { p50: waitOf(0.5), p99: waitOf(0.99) },
    }
    say(`${meant.toFixed(1)}/s: ${JSON.stringify(check)}`)
    checks.push(check)
  }
  return checks
}

/** A spike of twice the capacity of the slots. */
export async function checkSpike(system: MeasuredSystem, emails: string[], turnaroundMs: number): Promise<SpikeCheck> {
  const capacity = (SLOTS * 1_000) / (STAND_IN_MS + turnaroundMs)
  const [spikeS, forS] = [10, 30]
  const startedAt = Date.now()
  const jobs = await logInAtRate(system, emails, {
    perSecond: (atS) => (atS < spikeS ? capacity * 2 : capacity / 4),
    forS,
  })
  const inSpike = jobs.filter(({ endedAt, serviceMs, queueWaitMs }) => {
    return endedAt - serviceMs - queueWaitMs < startedAt + spikeS * 1_000
  }).length
  const station = {
    perSecond: (jobs.length - inSpike) / (forS - spikeS),
    spikePerSecond: inSpike / spikeS,
    spikeS,
    slotMs: STAND_IN_MS + turnaroundMs,
    slots: SLOTS,
  }
  return {
    ...station,
    measured: {
      deepest: deepest(jobs),
      longestWaitS: Math.max(...jobs.map(waitMs)) / 1_000,
      overAfterS: overAfterS(jobs, startedAt),
    },
  }
}

/** From the login to the start of its hash. */
function waitMs({ queueWaitMs, serviceMs }: JobTimes): number {
  return queueWaitMs + Math.max(0, serviceMs - STAND_IN_MS)
}

/** The most jobs that waited at a time. */
function deepest(jobs: JobTimes[]): number {
  const changes = jobs.flatMap(({ endedAt, serviceMs, queueWaitMs }) => {
    return [
      { at: endedAt - serviceMs - queueWaitMs, by: 1 },
      { at: endedAt - STAND_IN_MS, by: -1 },
    ]
  })
  let depth = 0
  let most = 0
  for (const { by } of changes.sort((a, b) => a.at - b.at)) {
    depth += by
    most = Math.max(most, depth)
  }
  return most
}

/** When waits were ordinary again: the end of the last job that waited longer than four hashes. */
function overAfterS(jobs: JobTimes[], startedAt: number): number {
  const late = jobs.filter((job) => waitMs(job) > 4 * STAND_IN_MS)
  return (Math.max(...late.map(({ endedAt }) => endedAt)) - startedAt) / 1_000
}

// Logins at random moments (Poisson) or as many at a time, and the waits of their jobs as the worker's log has them.

export const PASSWORD = 'whatever it is'

/** A job in the worker's log. */
export interface JobTimes {
  /** Epoch milliseconds. */
  endedAt: number
  /** Until a worker took it. */
  queueWaitMs: number
  /** From then on, with the wait for a slot. */
  serviceMs: number
}

/** One login; a ticket is not redeemed, because only the wait in the queue is measured. Rejects on any answer but a verdict or a ticket. */
async function logIn(api: ApiClient, emails: string[], turn: number): Promise<void> {
  const email = emails[turn % emails.length] ?? ''
  const { status, text } = await api.login({ email, password: PASSWORD })
  if (![200, 202, 401].includes(status)) throw new Error(`A login was answered with ${status}: ${text}`)
}

/** Logs in for so many seconds at a rate that may change with the seconds since the start, and returns the jobs. */
export async function logInAtRate(
  { api, worker }: MeasuredSystem,
  emails: string[],
  { perSecond, forS }: { perSecond: (atS: number) => number; forS: number },
): Promise<JobTimes[]> {
  const before = worker.logs.length
  const running: Promise<void>[] = []
  const startedAt = performance.now()
  for (let dueS = 0; dueS < forS; dueS += -Math.log(1 - Math.random()) / perSecond(dueS)) {
    await sleep(Math.max(0, dueS * 1_000 - (performance.now() - startedAt)))
    running.push(logIn(api, emails, running.length))
  }
  await Promise.all(running)
  const jobs = (): JobTimes[] => jobsSince(worker, before)
  await until(() => jobs().length >= running.length, { timeoutMs: 120_000, what: 'the end of all jobs' })
  return jobs()
}

/** The jobs in the worker's log from this line on. */
export function jobsSince(worker: TestProcess, line: number): JobTimes[] {
  return worker.logs.slice(line).flatMap(({ msg, time, queueWaitMs, serviceMs }) => {
    if (msg !== 'job answered' || typeof queueWaitMs !== 'number' || typeof serviceMs !== 'number') return []
    return [{ endedAt: Date.parse(String(time)), queueWaitMs, serviceMs }]
  })
}

/** Keeps so many logins in flight for so many seconds, and returns their number. */
export async function logInAtOnce({ api }: MeasuredSystem, emails: string[], atOnce: number, forS: number) {
  const endMs = performance.now() + forS * 1_000
  let logins = 0
  const callers = Array.from({ length: atOnce }, async () => {
    while (performance.now() < endMs) await logIn(api, emails, logins++)
  })
  await Promise.all(callers)
  return logins
}

/** A login waits for the others of a spike. */
const PATIENCE_MS = 60_000

export type MeasuredSystem = Awaited<ReturnType<typeof startSystem>>

/** Starts everything; the worker has this number of slots. */
export async function startSystem(keeper: Keeper, slots: number) {
  const packages = ['@spillway/api', '@spillway/worker']
  const services = await startOwnServices({ keeper, purpose: 'sizing', packages, durable: true })
  const { databaseUrl, redisUrl } = services
  const env = { SPILLWAY_TEST_HASHES: 'true', WORKER_CONCURRENCY: String(slots) }
  const spillway = openSpillway({ databaseUrl, redisUrl, env })
  const [gateway, worker] = await Promise.all([spillway.gateway(), spillway.worker()])
  await spillway.knowsWorkers()
  return {
    redisUrl,
    queuePrefix: spillway.queuePrefix,
    gateway,
    /** Of the gateway. */
    api: createApiClient(gateway.url, { timeoutMs: PATIENCE_MS }),
    worker,
    /** Creates accounts with this stored hash, and returns their addresses. */
    accounts: (name: string, count: number, passwordHash: string) =>
      createAccounts(databaseUrl, name, count, passwordHash),
    async close() {
      await spillway.close()
      await services.close()
    },
  }
}
