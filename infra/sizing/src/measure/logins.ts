// Logins at random moments (Poisson) or as many at a time, and the waits of their jobs as the worker's log has them.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Keeper } from '@spillway/local/processes/keeper'
import { openSpillway, type TestProcess, until } from '@spillway/local/rig'
import { type ApiClient, createApiClient } from '@spillway/local/rig/api-client'
import { startOwnServices } from '@spillway/local/rig/services'
import { createAccounts } from '@spillway/local/services/query'

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
