// Both ends of the queue, started for one test: real ones, in this process.
import { randomBytes, randomUUID } from 'node:crypto'
import { createLogger, type Logger } from '@spillway/common/log'
import { loadWithDoubles } from '@spillway/infra/harness/doubles'
import type { Ending } from '@spillway/infra/harness/namespace'
import { until } from '@spillway/infra/processes/until'
import {
  type Expected,
  type JobName,
  PasswordClient,
  type PasswordClientOptions,
  type Requests,
  type Result,
  type Submitted,
} from '@spillway/queue/client'
import { parseKeyring } from '@spillway/queue/wire/seal'
import { readWorkerConfig } from '@spillway/worker/config'
import { RunningWorker } from '@spillway/worker/start'
import { Redis } from 'ioredis'
import { redisProxy, type Space, spaceFor } from './space.ts'

export const sealKeys = `test:${randomBytes(32).toString('base64')}`
export const keyring = parseKeyring(sealKeys)

/** The policy of workers in tests: cheap, but argon2id all the same. */
export const policy = { memoryKib: 64, time: 1, parallelism: 1 }

/** The environment of a worker for this queue. */
export function workerEnvironment({ redisUrl, prefix }: Space): Record<string, string> {
  return {
    REDIS_URL: redisUrl,
    QUEUE_PREFIX: prefix,
    SPILLWAY_SEAL_KEYS: sealKeys,
    ARGON2_MEMORY_KIB: String(policy.memoryKib),
    ARGON2_TIME: String(policy.time),
    ARGON2_PARALLELISM: String(policy.parallelism),
    OPS_PORT: '0',
  }
}

/** Longer than any test on a busy machine. */
const JOB_LIFE_MS = 120_000

const log = createLogger({ service: 'test', level: 'silent' })

export interface WorkerOptions {
  slots?: number
  env?: Record<string, string>
  /** [says nothing] */
  log?: Logger
}

export interface SaidLine {
  level: 'info' | 'warn' | 'error'
  msg: string
  [fact: string]: unknown
}

/** A log that keeps what it is told instead of printing it. */
export function keepingLog(): { lines: SaidLine[]; log: Logger } {
  const lines: SaidLine[] = []
  const kept = createLogger({ service: 'test', level: 'silent' })
  for (const level of ['info', 'warn', 'error'] as const)
    kept[level] = (facts: unknown, msg?: unknown) => {
      lines.push({ ...(typeof facts === 'object' ? facts : {}), level, msg: String(msg ?? facts) })
    }
  return { lines, log: kept }
}

/** What tests see of a worker: its private fields are its own. */
export type StartedWorker = Pick<RunningWorker, keyof RunningWorker>

/** A worker in this process; it is closed with the space unless that has been done before. */
export async function startedWorker(space: Space, options: WorkerOptions = {}): Promise<StartedWorker> {
  const { slots = 2, env = {}, log: told = log } = options
  const config = readWorkerConfig({ ...workerEnvironment(space), LOG_LEVEL: 'silent', ...env })
  const worker = await RunningWorker.start(config, slots, told, {}, loadWithDoubles)
  let closed: Promise<void> | undefined
  const close = (): Promise<void> => {
    closed ??= worker.close()
    return closed
  }
  space.closing(close)
  return { ...worker, close }
}

/**
 * A client that is ready; closed with the space. It waits for an answer of Redis as long as a test
 * may take: a machine that stands still for two seconds would otherwise fail a command.
 */
export async function readyClient(space: Space, options: Partial<PasswordClientOptions> = {}): Promise<PasswordClient> {
  const client = hastyClient(space, options)
  if (client.connection instanceof Redis) client.connection.options.commandTimeout = JOB_LIFE_MS
  await until(() => client.isReady(), { what: 'a client that is ready' })
  return client
}

/** A client that waits for an answer of Redis as long as gateways do. */
export function hastyClient(space: Space, options: Partial<PasswordClientOptions> = {}): PasswordClient {
  const client = new PasswordClient({
    redisUrl: space.redisUrl,
    prefix: space.prefix,
    keyring,
    log,
    ...options,
  })
  space.closing(() => client.close())
  return client
}

/** A worker on a queue of its own; both are closed after the test. */
export async function workerFor(t: Ending, options: WorkerOptions = {}) {
  const space = spaceFor(t)
  return { space, ...space, worker: await startedWorker(space, options) }
}

/** A client of a queue of its own, ready. */
export async function clientFor(t: Ending, options: Partial<PasswordClientOptions> = {}) {
  const space = spaceFor(t)
  return { space, ...space, client: await readyClient(space, options) }
}

/** Both ends of a queue of their own. */
export async function clientAndWorker(t: Ending, options: WorkerOptions = {}) {
  const ready = await clientFor(t)
  return { ...ready, worker: await startedWorker(ready.space, options) }
}

/** The same by way of a proxy. */
export async function proxiedClient(t: Ending, options: Partial<PasswordClientOptions> = {}) {
  const space = spaceFor(t)
  const proxy = await redisProxy(space)
  return { space, ...space, proxy, client: await readyClient(space, { redisUrl: proxy.url, ...options }) }
}

export interface JobOptions {
  /** [open] */
  place?: 'open' | 'ticketed'
  /** From now to the deadline, in milliseconds [longer than any test]. */
  lifeMs?: number
  /** How long the client is there for the result, in milliseconds [to the deadline]. */
  presentMs?: number
}

/** Adds a job. */
export function submit<Name extends JobName>(
  client: PasswordClient,
  name: Name,
  request: Requests[Name],
  { place = 'open', lifeMs = JOB_LIFE_MS, presentMs = lifeMs }: JobOptions = {},
): Promise<Submitted> {
  const job = { id: randomUUID(), name, deadline: client.now() + lifeMs }
  return client.submit({ job, request, admitted: client.admitTo(place), presentMs })
}

/** Adds a verify of a test hash. */
export function submitted(client: PasswordClient, storedHash = '$spillway-token$'): Promise<Submitted> {
  return submit(client, 'verify', { password: 'right', storedHash })
}

/** The result of a job, within a minute unless told otherwise. */
export function resultOf(expected: Expected, waitMs = 60_000): Promise<Result | undefined> {
  return expected.result(waitMs)
}

/** A worker's counters of jobs, a line for each kind that there was: `verify hashed 2`. */
export async function jobsCounted({ opsUrl }: { opsUrl: string }): Promise<string[]> {
  const metrics = await (await fetch(`${opsUrl}/metrics`)).text()
  const counted = metrics.matchAll(/^spillway_jobs_total\{job="(\w+)",outcome="(\w+)"\} ([1-9]\d*)$/gm)
  return [...counted].map(([, job, outcome, count]) => `${job} ${outcome} ${count}`).sort()
}

/** Resolves when a worker has counted these jobs and no others, which follows the results. */
export async function jobsAreCounted(worker: { opsUrl: string }, ...lines: string[]): Promise<void> {
  await until(async () => (await jobsCounted(worker)).join() === lines.join(), {
    what: `jobs counted: ${lines.join()}`,
  })
}
