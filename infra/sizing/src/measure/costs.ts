// What one login costs, by who spends it: processor time, time in a slot, memory.
import { memoryOf, processorMs } from '@spillway/local/processes/processor-time'
import type { Figures } from '../figures.ts'
import { jobsSince, logInAtOnce } from './logins.ts'
import type { MeasuredSystem } from './system.ts'

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

async function attempts({ api, worker }: MeasuredSystem, emails: string[]): Promise<number> {
  const attempt = (email: string) => api.login({ email, password: 'whatever it is' })
  for (const email of emails.slice(0, 20)) await attempt(email)
  const before = processorMs([worker.pid])
  for (let round = 0; round < 3; round += 1) for (const email of emails) await attempt(email)
  return (processorMs([worker.pid]) - before) / (3 * emails.length)
}

/** What stands in memory when everything rests. */
export function measureMemory({ gateway, worker }: MeasuredSystem): Figures['memoryMib'] {
  const mib = (pid: number): number => (memoryOf(pid)?.bytes ?? Number.NaN) / 2 ** 20
  return { gateway: mib(gateway.pid), worker: mib(worker.pid) }
}

/** How long a slot that always has a next job is without one, by hashes of one length. */
export async function measureTurnaround(system: MeasuredSystem, slots: number, emails: string[]): Promise<number> {
  const line = system.worker.logs.length
  const startedAt = Date.now()
  await logInAtOnce(system, emails, 16 * slots, MEASURE_S)
  // Once it runs evenly, and until the last ones find no others behind them.
  const [fromMs, toMs] = [startedAt + 1_000, startedAt + MEASURE_S * 1_000]
  const jobs = jobsSince(system.worker, line).filter(({ endedAt }) => endedAt >= fromMs && endedAt < toMs)
  const hashMs = jobs.reduce((sum, { serviceMs }) => sum + serviceMs, 0) / jobs.length
  return (slots * (toMs - fromMs)) / jobs.length - hashMs
}
