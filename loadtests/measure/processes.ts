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

/** By their names in results, which end with their units. */
type Figures = Record<string, number>

export class Use {
  readonly #gateway: number[]
  readonly #worker: number[]
  readonly #setting: Setting
  #before: Figures = {}
  readonly #used: Figures = {}

  constructor({ pids }: Running, setting: Setting) {
    this.#setting = setting
    this.#gateway = [pids.gateway]
    this.#worker = pids.worker === undefined ? [] : [pids.worker]
  }

  async begin(): Promise<void> {
    this.#toggleCounting()
    this.#before = await this.#counts()
  }

  async end(): Promise<void> {
    for (const [name, count] of Object.entries(await this.#counts()))
      this.#used[name] = count - (this.#before[name] ?? 0)
    this.#toggleCounting()
    this.#used.gatewayKib = (await allocatedBytesOf(this.#gateway)) / BYTES_PER_KIB
    this.#used.workerKib = (await allocatedBytesOf(this.#worker)) / BYTES_PER_KIB
  }

  /** The use between both moments, divided by this number of logins or seconds. */
  per(number: number): Figures {
    return Object.fromEntries(Object.entries(this.#used).map(([name, used]) => [name, used / number]))
  }

  #toggleCounting(): void {
    for (const pid of [...this.#gateway, ...this.#worker]) process.kill(pid, 'SIGUSR2')
  }

  /** System calls are reads and writes of gateway and worker, also of sockets. */
  async #counts(): Promise<Figures> {
    const { redisUrl, databaseUrl } = this.#setting
    // Before the questions below, which take time themselves.
    const gatewayMs = sumOf(this.#gateway, processorMsOf)
    const workerMs = sumOf(this.#worker, processorMsOf)
    const hashMs = sumOf(this.#worker, hashMsOf)
    const redisMs = sumOf(findPids('-server', `:${new URL(redisUrl).port}`), processorMsOf)
    const postgresMs = sumOf(findPids('postgres:', databaseOf(databaseUrl)), processorMsOf)
    const systemCallsCount = sumOf([...this.#gateway, ...this.#worker], systemCallsOf)
    const info = String(await redisCommand(redisUrl, 'INFO', 'stats'))
    const redisCommandsCount = Number(/^total_commands_processed:(\d+)/m.exec(info)?.[1])
    const text = 'SELECT xact_commit::int AS count FROM pg_stat_database WHERE datname = current_database()'
    const [row] = await query(databaseUrl, text)
    return {
      besideMs: gatewayMs + workerMs - hashMs + redisMs + postgresMs,
      gatewayMs,
      workerMs,
      hashMs,
      redisMs,
      postgresMs,
      systemCallsCount,
      redisCommandsCount,
      transactionsCount: Number(row?.count),
    }
  }
}

function sumOf<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0)
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
  return sumOf(hashing, processorMsOf)
}

function systemCallsOf(pid: number): number {
  const counts = readProc(`${pid}/io`)?.match(/(?<=^sysc[rw]: )\d+/gm) ?? []
  return sumOf(counts, Number)
}
