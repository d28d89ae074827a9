// What the processes of one Spillway use between two moments: processor time, allocated bytes, system
// calls, Redis commands and transactions.
import { readdirSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { findPids, readProc, readStat } from '@spillway/infra/processes/process-table'
import { until } from '@spillway/infra/processes/until'
import { databaseOf, query } from '@spillway/infra/services/query'
import { redisCommand } from '@spillway/infra/services/redis'
import { compiled, type Running } from '../contenders/contender.ts'
import type { Setting } from '../scenarios/scenario.ts'

/** The environment of a process whose allocations are counted: see allocations-program.ts. */
export const countsAllocations = {
  NODE_OPTIONS: `--import=${pathToFileURL(compiled('measure/allocations-program'))}`,
  ALLOCATED_TO: join(tmpdir(), 'spillway-allocated-'),
}

const BYTES_PER_KIB = 1_024
/** USER_HZ is 100 on every Linux that Node runs on. */
const MS_PER_TICK = 10

type Process = 'gateway' | 'worker' | 'redis' | 'postgres'

interface Counts {
  processorMs: Record<Process | 'hash', number>
  /** Reads and writes of gateway and worker, also of sockets. */
  systemCalls: number
  redisCommands: number
  transactions: number
}

export class Use {
  readonly #pids: Record<Process, () => number[]>
  readonly #setting: Setting
  #before: Counts | undefined
  #after: Counts | undefined
  #allocatedBytes: Record<'gateway' | 'worker', number> = { gateway: 0, worker: 0 }

  constructor({ pids }: Running, setting: Setting) {
    this.#setting = setting
    this.#pids = {
      gateway: () => [pids.gateway],
      worker: () => (pids.worker === undefined ? [] : [pids.worker]),
      redis: () => findPids('-server', `:${new URL(setting.redisUrl).port}`),
      postgres: () => findPids('postgres:', databaseOf(setting.databaseUrl)),
    }
  }

  async begin(): Promise<void> {
    this.#toggleCounting()
    this.#before = await this.#counts()
  }

  async end(): Promise<void> {
    this.#after = await this.#counts()
    this.#toggleCounting()
    const { gateway, worker } = this.#pids
    this.#allocatedBytes = { gateway: await allocatedBytesOf(gateway()), worker: await allocatedBytesOf(worker()) }
  }

  /** The use between both moments, divided by this number of logins or seconds. */
  per(number: number) {
    const [before, after] = [this.#before, this.#after]
    if (before === undefined || after === undefined) throw new Error('the use was not measured')
    const ms = (name: Process | 'hash') => (after.processorMs[name] - before.processorMs[name]) / number
    return {
      besideMs: ms('gateway') + ms('worker') - ms('hash') + ms('redis') + ms('postgres'),
      gatewayMs: ms('gateway'),
      workerMs: ms('worker'),
      hashMs: ms('hash'),
      redisMs: ms('redis'),
      postgresMs: ms('postgres'),
      gatewayKib: this.#allocatedBytes.gateway / BYTES_PER_KIB / number,
      workerKib: this.#allocatedBytes.worker / BYTES_PER_KIB / number,
      systemCallsCount: (after.systemCalls - before.systemCalls) / number,
      redisCommandsCount: (after.redisCommands - before.redisCommands) / number,
      transactionsCount: (after.transactions - before.transactions) / number,
    }
  }

  #toggleCounting(): void {
    for (const pid of [...this.#pids.gateway(), ...this.#pids.worker()]) process.kill(pid, 'SIGUSR2')
  }

  async #counts(): Promise<Counts> {
    const { redisUrl, databaseUrl } = this.#setting
    const sum = (pids: number[], of: (pid: number) => number) => pids.reduce((total, pid) => total + of(pid), 0)
    const { gateway, worker, redis, postgres } = this.#pids
    // Before the questions below, which take time themselves.
    const processorMs = {
      gateway: sum(gateway(), processorMsOf),
      worker: sum(worker(), processorMsOf),
      hash: sum(worker(), hashMsOf),
      redis: sum(redis(), processorMsOf),
      postgres: sum(postgres(), processorMsOf),
    }
    const systemCalls = sum([...gateway(), ...worker()], systemCallsOf)
    const info = String(await redisCommand(redisUrl, 'INFO', 'stats'))
    const text = 'SELECT xact_commit::int AS count FROM pg_stat_database WHERE datname = current_database()'
    const [row] = await query(databaseUrl, text)
    const redisCommands = Number(/^total_commands_processed:(\d+)/m.exec(info)?.[1])
    return { processorMs, systemCalls, redisCommands, transactions: Number(row?.count) }
  }
}

async function allocatedBytesOf(pids: readonly number[]): Promise<number> {
  let sum = 0
  for (const pid of pids) {
    const file = countsAllocations.ALLOCATED_TO + pid
    sum += Number(await until(() => readFile(file, 'utf8').catch(() => undefined), { what: 'counted allocations' }))
    await rm(file)
  }
  return sum
}

/** @param id of a process, or `<pid>/task/<id>` of one thread */
function processorMsOf(id: number | string): number {
  // The 14th and 15th fields of proc_pid_stat(5): in user mode, and in the kernel.
  const [user, kernel] = readStat(id)?.slice(11, 13) ?? []
  return (Number(user ?? 0) + Number(kernel ?? 0)) * MS_PER_TICK
}

/** What the threads of the native engine take: they are named `hash`, and a number. */
function hashMsOf(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`).map((thread) => `${pid}/task/${thread}`)
  const hashing = threads.filter((thread) => readProc(`${thread}/comm`)?.startsWith('hash '))
  return hashing.reduce((sum, thread) => sum + processorMsOf(thread), 0)
}

function systemCallsOf(pid: number): number {
  const counts = readProc(`${pid}/io`)?.match(/(?<=^sysc[rw]: )\d+/gm) ?? []
  return counts.reduce((sum, count) => sum + Number(count), 0)
}
