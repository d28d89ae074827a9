// The model's predictions beside what the real gateway, queue and worker did.
import type { Figures, SpikeCheck, WaitCheck } from '../figures.ts'
import { waitQuantileMs } from '../queue-model.ts'
import { spikeCost } from '../spike.ts'
import { type JobTimes, logInAtOnce, logInAtRate } from './logins.ts'
import { memoryMib, processorMs } from './processor-time.ts'
import type { MeasuredSystem } from './system.ts'

/** Hashes that wait without using a processor, so that a machine with few of them can stand for many. */
export const STAND_IN_MS = 50
export const SLOTS = 4

const MEASURE_S = 10

/** What one login costs everyone but the hash, by hashes that are none. */
export async function measureCost(system: MeasuredSystem): Promise<Figures['costMs']> {
  const emails = await system.accounts('token', 500, '$spillway-token$')
  const spent = (): Figures['costMs'] => ({
    gateway: processorMs([system.gateway.pid]),
    worker: processorMs([system.worker.pid]),
    redis: processorMs(system.redisPids),
    postgres: processorMs(system.postgresPids),
  })
  await logInAtOnce(system, emails, 32, 3)
  const before = spent()
  const logins = await logInAtOnce(system, emails, 32, MEASURE_S)
  const after = spent()
  const cost = (who: keyof Figures['costMs']): number => (after[who] - before[who]) / logins
  return { gateway: cost('gateway'), worker: cost('worker'), redis: cost('redis'), postgres: cost('postgres') }
}

/** Processor time of one hash at the default cost: the worker's for such logins, without what it costs beside. */
export async function measureHash(system: MeasuredSystem, workerCostMs: number): Promise<number> {
  const storedHash = '$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$d2l0aG91dCBhbnkgbWF0Y2ggd2hhdGV2ZXIgaXQ'
  const emails = await system.accounts('argon2', 100, storedHash)
  // Told apart from a success by nothing that costs anything.
  const logins = await attempts(system, emails)
  return logins - workerCostMs
}

async function attempts({ url, worker }: MeasuredSystem, emails: string[]): Promise<number> {
  const attempt = async (email: string): Promise<void> => {
    const body = JSON.stringify({ email, password: 'whatever it is' })
    await fetch(`${url}/v1/login`, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  }
  for (const email of emails.slice(0, 20)) await attempt(email)
  const before = processorMs([worker.pid])
  for (let round = 0; round < 3; round += 1) for (const email of emails) await attempt(email)
  return (processorMs([worker.pid]) - before) / (3 * emails.length)
}

/** Waits at several rates: as predicted from the service time that was measured, and as they were. */
export async function checkWaits(system: MeasuredSystem, say: (line: string) => void): Promise<WaitCheck[]> {
  const emails = await system.accounts('waits', 500, `$spillway-wait$${STAND_IN_MS}$`)
  const checks: WaitCheck[] = []
  for (const busy of [0.5, 0.75, 0.9]) {
    const perSecond = (busy * SLOTS * 1_000) / STAND_IN_MS
    const jobs = await logInAtRate(system, emails, { perSecond: () => perSecond, forS: 40 })
    const serviceMs = mean(jobs.map((job) => job.serviceMs))
    const station = { perSecond, serviceMs, slots: SLOTS }
    const waits = jobs.map((job) => job.queueWaitMs).sort((a, b) => a - b)
    const check = {
      ...station,
      logins: jobs.length,
      measuredMs: { p50: quantile(waits, 0.5), p99: quantile(waits, 0.99) },
      predictedMs: { p50: waitQuantileMs(station, 0.5), p99: waitQuantileMs(station, 0.99) },
    }
    say(`${perSecond}/s: ${JSON.stringify(check)}`)
    checks.push(check)
  }
  return checks
}

/** A spike of twice what the slots can take. */
export async function checkSpike(system: MeasuredSystem): Promise<SpikeCheck> {
  const emails = await system.accounts('spike', 500, `$spillway-wait$${STAND_IN_MS}$`)
  const capacity = (SLOTS * 1_000) / STAND_IN_MS
  const demand = { perSecond: capacity / 4, spikePerSecond: capacity * 2, spikeS: 10 }
  const startedAt = Date.now()
  const jobs = await logInAtRate(system, emails, {
    perSecond: (atS) => (atS < demand.spikeS ? demand.spikePerSecond : demand.perSecond),
    forS: 30,
  })
  const serviceMs = mean(jobs.map((job) => job.serviceMs))
  const station = { ...demand, serviceMs, slots: SLOTS }
  return {
    ...station,
    measured: {
      deepest: deepest(jobs),
      longestWaitS: Math.max(...jobs.map((job) => job.queueWaitMs)) / 1_000,
      overAfterS: overAfterS(jobs, startedAt),
    },
    predicted: spikeCost({ ...station, laterSlots: SLOTS, scaleS: 0 }),
  }
}

/** The most jobs that waited at a time, from when each began to wait and when it was started. */
function deepest(jobs: JobTimes[]): number {
  const changes = jobs.flatMap(({ endedAt, serviceMs, queueWaitMs }) => {
    const startedAt = endedAt - serviceMs
    return [
      { at: startedAt - queueWaitMs, by: 1 },
      { at: startedAt, by: -1 },
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

/** When waits were ordinary again: the last job that waited longer than a service. */
function overAfterS(jobs: JobTimes[], startedAt: number): number {
  const late = jobs.filter((job) => job.queueWaitMs > 4 * job.serviceMs)
  return (Math.max(...late.map(({ endedAt }) => endedAt)) - startedAt) / 1_000
}

/** What stands in memory when everything rests. */
export function measureMemory({ gateway, worker }: MeasuredSystem): Figures['memoryMib'] {
  return { gateway: memoryMib(gateway.pid), worker: memoryMib(worker.pid) }
}

function mean(values: number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

function quantile(sorted: number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}
