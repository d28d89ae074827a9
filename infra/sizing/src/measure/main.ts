// The command `pnpm --filter @spillway/sizing run measure`: measures what `pnpm size` reckons with, and checks its model.
// Takes five minutes. Rates and waits need a machine with nothing else to do; processor time is not disturbed as easily.
import { writeFile } from 'node:fs/promises'
import { cpus, release } from 'node:os'
import { runWithKeeper } from '@spillway/local/processes/command'
import { memoryOf, processorMs } from '@spillway/local/processes/processor-time'
import { respondAsync } from '@spillway/local/rig/api-client'
import { Redis } from 'ioredis'
import { type Figures, figuresFile } from '../figures.ts'
import { checkSpike, checkWaits, SLOTS, STAND_IN_MS, standIns } from './checks.ts'
import { DEFAULT_POLICY, openHashMeter } from './hash.ts'
import { jobsSince, logInAtOnce, type MeasuredSystem, PASSWORD, startSystem } from './logins.ts'

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
  const costMs = await measureCost(system)
  const hashMs = await measureHash()
  const jobBytes = await measureJobBytes(system)
  const [cpu] = cpus()
  return {
    machine: `${cpus().length} × ${cpu?.model.trim()}, Linux ${release()}, Node ${process.version}`,
    measuredAt: new Date().toISOString().slice(0, 10),
    costMs,
    hashMs,
    turnaroundMs,
    jobBytes,
    memoryMib,
    checks,
    spike,
  }
}

/** Processor time of one hash at the default cost, with full batches. */
async function measureHash(): Promise<number> {
  const meter = await openHashMeter({ native: true })
  try {
    return (await meter.measure(DEFAULT_POLICY)).fullMs
  } finally {
    meter.close()
  }
}

// The cost of one login: processor time by process, time in a slot, memory.

const WARM_UP_S = 3
const MEASURE_S = 10
const AT_ONCE = 32
const WAITING_JOBS = 1_000

type Cost = Figures['costMs']

/** Processor time of one login without its hash: a worker takes no time for these. */
async function measureCost(system: MeasuredSystem): Promise<Cost> {
  return await costOf(system, await system.accounts('token', 500, '$spillway-token$'), AT_ONCE)
}

async function costOf(system: MeasuredSystem, emails: string[], atOnce: number): Promise<Cost> {
  const { gateway, worker, redisPids, postgresPids } = system
  const spent = (): Cost => ({
    gateway: processorMs([gateway.pid]),
    worker: processorMs([worker.pid]),
    redis: processorMs(redisPids),
    postgres: processorMs(postgresPids),
  })
  await logInAtOnce(system, emails, atOnce, WARM_UP_S)
  const before = spent()
  const logins = await logInAtOnce(system, emails, atOnce, MEASURE_S)
  const after = spent()
  const each = (name: keyof Cost): number => (after[name] - before[name]) / logins
  return { gateway: each('gateway'), worker: each('worker'), redis: each('redis'), postgres: each('postgres') }
}

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
