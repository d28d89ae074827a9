// The command `pnpm --filter @spillway/infra run measure`: measures what `pnpm size` reckons with, and checks its model.
// Processor time is left to `pnpm load cost login --size`, which the command runs afterwards. Takes six minutes. Rates and waits need a machine with nothing else to do.
import { writeFile } from 'node:fs/promises'
import { cpus, release } from 'node:os'
import { runWithKeeper } from '@spillway/infra/processes/command'
import { memoryOf } from '@spillway/infra/processes/processor-time'
import { respondAsync } from '@spillway/infra/rig/api-client'
import { Redis } from 'ioredis'
import { type Figures, figuresFile, readFigures } from '../figures.ts'
import {
  checkSpike,
  checkWaits,
  jobsSince,
  logInAtOnce,
  type MeasuredSystem,
  PASSWORD,
  SLOTS,
  STAND_IN_MS,
  standIns,
  startSystem,
} from './checks.ts'
import { DEFAULT_POLICY, openHashMeter } from './hash.ts'

await runWithKeeper(async (keeper) => {
  const system = await startSystem(keeper, SLOTS)
  try {
    const figures = await measure(system)
    const round = (_key: string, value: unknown) => (typeof value === 'number' ? Number(value.toFixed(3)) : value)
    const rounded = JSON.stringify(figures, round, 2)
    await writeFile(figuresFile, `${rounded}\n`)
    console.log(rounded)
  } finally {
    await system.close()
  }
})

async function measure(system: MeasuredSystem): Promise<Figures> {
  const memoryMib = measureMemory(system)
  const emails = await standIns(system)
  const turnaroundMs = await measureTurnaround(system, SLOTS, emails)
  const checks = await checkWaits(system, emails, turnaroundMs, console.log)
  const spike = await checkSpike(system, emails, turnaroundMs)
  const hash = await measureHash()
  const jobBytes = await measureJobBytes(system)
  const [cpu] = cpus()
  return {
    machine: `${cpus().length} × ${cpu?.model.trim()}, Linux ${release()}, Node ${process.version}`,
    measuredAt: new Date().toISOString().slice(0, 10),
    costMs: readFigures().costMs,
    ...hash,
    turnaroundMs,
    jobBytes,
    memoryMib,
    checks,
    spike,
  }
}

/** Processor time of one hash at the default cost, with full batches. */
async function measureHash(): Promise<Pick<Figures, 'hashEngine' | 'hashMs'>> {
  const meter = await openHashMeter({ native: true })
  try {
    return { hashEngine: meter.engine('argon2id'), hashMs: (await meter.measure(DEFAULT_POLICY)).fullMs }
  } finally {
    meter.close()
  }
}

// What a login takes beside processor time, which `pnpm load cost login --size` measures: time in a slot, memory.

const MEASURE_S = 10
const WAITING_JOBS = 1_000

/** Resident memory at rest. */
function measureMemory({ gateway, worker }: MeasuredSystem): Figures['memoryMib'] {
  const mib = (pid: number): number => (memoryOf(pid)?.bytes ?? Number.NaN) / 2 ** 20
  return { gateway: mib(gateway.pid), worker: mib(worker.pid) }
}

/** The time between two hashes of a slot for which jobs always wait, measured with hashes of one length. */
async function measureTurnaround(system: MeasuredSystem, slots: number, emails: string[]): Promise<number> {
  const line = system.worker.logs.length
  const startedAt = Date.now()
  await logInAtOnce(system, emails, 16 * slots, MEASURE_S)
  // Without the start, and without the end, when no jobs wait.
  const [fromMs, toMs] = [startedAt + 1_000, startedAt + MEASURE_S * 1_000]
  const jobs = jobsSince(system.worker, line).filter(({ endedAt }) => endedAt >= fromMs && endedAt < toMs)
  return (slots * (toMs - fromMs)) / jobs.length - STAND_IN_MS
}

/** The memory of a waiting job in Redis, in bytes. Stops the worker for good. */
async function measureJobBytes(system: MeasuredSystem): Promise<number> {
  const emails = await system.accounts('memory', WAITING_JOBS, '$spillway-token$')
  const redis = new Redis(system.redisUrl)
  const queue = `${system.queuePrefix}:passwords`
  const used = async (): Promise<number> => Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1])
  try {
    await system.worker.stop()
    const before = await used()
    for (const email of emails) await system.api.login({ email, password: PASSWORD }, respondAsync)
    const waiting = (await redis.llen(`${queue}:wait`)) + (await redis.zcard(`${queue}:prioritized`))
    return ((await used()) - before) / waiting
  } finally {
    redis.disconnect()
  }
}
