// A contender is one login architecture that the scenarios can start, address and measure.
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { type ProcessOptions, startProcess } from '@spillway/infra/processes/node-process'
import { findPids } from '@spillway/infra/processes/process-table'
import { canPin } from '@spillway/infra/processes/processor-time'
import type { Algorithm } from './hashing.ts'

// The cores of each process. The generator has the first core for itself.

/** Every core. Counted before anything is pinned: later this process sees its own cores only. */
export const allCores = Array.from({ length: availableParallelism() }, (_, n) => n)

/** The load generator's, unless all are together. */
export const generatorCores = [0]

/**
 * `apart`: generator and database on the first core, contender and Redis on the others. `together`:
 * all on all cores.
 */
export type Placement = 'apart' | 'together'

/** The contender's cores; undefined where nothing can be pinned or there is only one. */
export const contenderCores = canPin && allCores.length > 1 ? allCores.slice(1) : undefined

export interface Services {
  databaseUrl: string
  redisUrl: string
}

export interface StartOptions {
  /** Processors its processes are pinned to; undefined leaves the choice to the system. */
  cores: readonly number[] | undefined
  /** Hashes new passwords; a login is verified by the algorithm of the account's hash. */
  algorithm: Algorithm
  services: Services
}

export function coreCount(cores: StartOptions['cores']): number {
  return (cores ?? allCores).length
}

/** A process that belongs to a contender, or serves it. */
export interface Part {
  /** Its role in the architecture, such as `api` or `worker`. */
  role: string
  pid: number
}

export interface Running {
  url: string
  /** A GET path beside logins that asks the file system, and so needs libuv's threads. */
  neighbourPath: string
  parts: readonly Part[]
  /** Jobs waiting or being hashed, where there is a queue that can be asked. */
  depth?(): Promise<number>
  /** Ends every process. Safe to call twice. */
  close(): Promise<void>
}

export interface Contender {
  /** The folder it lives in; also its name on the command line. */
  name: string
  title: string
  /** A description of the architecture by its users. */
  origin: string
  /** One sentence: where the hashing happens. */
  how: string
  /** With more callers it cannot take part: each is a process. */
  mostCallers?: number
  /** @throws one sentence when a process ends before it is ready */
  start(options: StartOptions): Promise<Running>
}

// Starts a contender's program in a process, pinned to processors where possible, until it prints
// its URL.

/** A program that prints nothing for this long after its start has failed. */
const READY_WITHIN_MS = 60_000

/** The path of a compiled program: a TypeScript loader would add threads to the measurement. */
export function compiled(program: string): string {
  return fileURLToPath(new URL(`../dist/${program}.js`, import.meta.url))
}

/** Starts a program of this package. Rejects with its last log lines where it does not start. */
export async function startProgram(program: string, options: Pick<ProcessOptions, 'cores' | 'env'>) {
  const started = startProcess({ entry: compiled(program), ...options })
  const { pid } = started
  /** Kills it with its children, which would hash on for callers that are gone. */
  async function close(): Promise<void> {
    try {
      process.kill(-pid, 'SIGKILL')
    } catch {
      // It has ended, and left nothing.
    }
    await started.exited
  }
  try {
    /** The line that it printed when it was ready: JSON with `url`. */
    const ready = await started.waitForLog(({ url }) => typeof url === 'string', READY_WITHIN_MS)
    started.keepOnly('nothing')
    return { pid, ready, close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Starts `contenders/rivals/<name>`, which serves the API and names its processes. */
export async function startRival(
  name: string,
  { cores, algorithm, services }: StartOptions,
  env: Record<string, string> = {},
): Promise<Running> {
  const settings = { DATABASE_URL: services.databaseUrl, ALGORITHM: algorithm, ...env }
  const { pid, ready, close } = await startProgram(`contenders/rivals/${name}`, { cores, env: settings })
  const others: Part[] = Array.isArray(ready.parts) ? ready.parts : []
  return {
    url: String(ready.url),
    neighbourPath: '/neighbour',
    parts: [{ role: 'api', pid }, ...others.map(({ role, pid }) => ({ role, pid }))],
    close,
  }
}

/** Embedded servers by their ports, because they have their cores, too. */
export function serverProcesses({ databaseUrl, redisUrl }: Services): Part[] {
  const first = (role: string, pids: readonly number[]) => pids.slice(0, 1).map((pid) => ({ role, pid }))
  return [
    ...first('postgres', findPids('postgres', `-p ${new URL(databaseUrl).port}`)),
    ...first('redis', findPids('-server', `:${new URL(redisUrl).port}`)),
  ]
}
