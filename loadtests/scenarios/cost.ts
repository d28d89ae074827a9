// What one login costs: processor time by process, system calls, Redis commands and transactions;
// held, with a ticket, and what a gateway and a worker do when nobody comes.
import { setTimeout as sleep } from 'node:timers/promises'
import { findPids, readProc, readStat } from '@spillway/infra/processes/process-table'
import { databaseOf, query } from '@spillway/infra/services/query'
import { redisCommand } from '@spillway/infra/services/redis'
import type { Measured } from '@spillway/loadtests/results'
import type { Running } from '../contenders/contender.ts'
import { type Caller, closedLoad, followsTickets, redeemsTickets } from '../load/closed.ts'
import { bareHash } from './bare-hash.ts'
import { type Measurement, ofContenders, type Scenario, type Setting } from './scenario.ts'

const USERS = 100
const DURATION_S = 8
const BARE_MS = 1_000
/** V8 compiles during the first thousands of logins: then a gateway takes half as much again. */
const SETTLING_S = 20
/** USER_HZ is 100 on every Linux that Node runs on. */
const MS_PER_TICK = 10

export const cost: Scenario = {
  name: 'cost',
  title: 'What one login costs',
  question: 'What do a login, a login with a ticket, and a second without any take of each process?',
  plan(setting) {
    const credentials = (number: number) => setting.accounts.login('argon2id', number)
    return [
      ...measured(setting, 'a login that is held', followsTickets(credentials)),
      ...measured(setting, 'a login with a ticket', redeemsTickets(credentials)),
      ...measured(setting, 'a second without logins', undefined),
    ]
  },
}

function measured(setting: Setting, variant: string, caller: Caller | undefined): Measurement[] {
  const { durationS = DURATION_S, users = USERS } = setting
  const measure = async (running: Running): Promise<Measured> => {
    const use = new Use(running, setting)
    if (caller === undefined) {
      await use.begin()
      await sleep(durationS * 1_000)
      await use.end()
      return { figures: use.per(durationS) }
    }
    const { tally, seconds } = await closedLoad({
      ...{ url: running.url, callers: users, caller, settlingS: SETTLING_S, countedS: durationS },
      onCounting: () => use.begin(),
      onCounted: () => use.end(),
    })
    const { processorMs: hashMs } = await bareHash('native:@node-rs/argon2:batches', BARE_MS, 'full batches')
    const figures = use.per(tally.counts.ok)
    const besideMs = figures.gatewayMs + figures.workerMs + figures.redisMs + figures.postgresMs - hashMs
    return { figures: { besideMs, hashMs, ...figures, perSecond: tally.counts.ok / seconds } }
  }
  return ofContenders(setting, { few: ['spillway'] }, measure).map((each) => ({ ...each, variant }))
}

type Process = 'gateway' | 'worker' | 'redis' | 'postgres'

interface Counts {
  processorMs: Record<Process, number>
  /** Reads and writes of gateway and worker, also of sockets. */
  systemCalls: number
  redisCommands: number
  transactions: number
}

/** What the processes of one Spillway use between two moments. */
class Use {
  readonly #pids: Record<Process, () => number[]>
  readonly #setting: Setting
  #before: Counts | undefined
  #after: Counts | undefined

  constructor({ pids }: Running, setting: Setting) {
    if (pids === undefined) throw new Error('only the processes of Spillway are told apart')
    this.#setting = setting
    this.#pids = {
      gateway: () => [pids.gateway],
      worker: () => [pids.worker],
      redis: () => findPids('-server', `:${new URL(setting.redisUrl).port}`),
      postgres: () => findPids('postgres:', databaseOf(setting.databaseUrl)),
    }
  }

  async begin(): Promise<void> {
    this.#before = await this.#counts()
  }

  async end(): Promise<void> {
    this.#after = await this.#counts()
  }

  /** The use between both moments, divided by this number of logins or seconds. */
  per(number: number) {
    const [before, after] = [this.#before, this.#after]
    if (before === undefined || after === undefined) throw new Error('the use was not measured')
    const ms = (name: Process) => (after.processorMs[name] - before.processorMs[name]) / number
    return {
      gatewayMs: ms('gateway'),
      workerMs: ms('worker'),
      redisMs: ms('redis'),
      postgresMs: ms('postgres'),
      systemCallsCount: (after.systemCalls - before.systemCalls) / number,
      redisCommandsCount: (after.redisCommands - before.redisCommands) / number,
      transactionsCount: (after.transactions - before.transactions) / number,
    }
  }

  async #counts(): Promise<Counts> {
    const { redisUrl, databaseUrl } = this.#setting
    const sum = (pids: number[], of: (pid: number) => number) => pids.reduce((total, pid) => total + of(pid), 0)
    const { gateway, worker, redis, postgres } = this.#pids
    // Before the questions below, which take time themselves.
    const processorMs = {
      gateway: sum(gateway(), processorMsOf),
      worker: sum(worker(), processorMsOf),
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

function processorMsOf(pid: number): number {
  // The 14th and 15th fields of proc_pid_stat(5): in user mode, and in the kernel.
  const [user, kernel] = readStat(pid)?.slice(11, 13) ?? []
  return (Number(user ?? 0) + Number(kernel ?? 0)) * MS_PER_TICK
}

function systemCallsOf(pid: number): number {
  const counts = readProc(`${pid}/io`)?.match(/(?<=^sysc[rw]: )\d+/gm) ?? []
  return counts.reduce((sum, count) => sum + Number(count), 0)
}
