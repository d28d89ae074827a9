// A contender is one login architecture that the scenarios can start, address and measure.
import { fileURLToPath } from 'node:url'
import { type ProcessOptions, startProcess } from '@spillway/infra/processes/node-process'
import { findPids } from '@spillway/infra/processes/process-table'
import { allCores } from '../measure/cores.ts'
import type { Algorithm } from './hashing.ts'

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

/** How many cores a contender may use. */
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
  /** A GET path that has nothing to do with logins but asks the file system, and so libuv's threads. */
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
  /** The reason that it cannot take part with this many callers; undefined when it can. */
  refuses?(callers: number): string | undefined
  /** @throws one sentence when a process ends before it is ready */
  start(options: StartOptions): Promise<Running>
}

// Starts a program of a contender in a process of its own, pinned to processors where the system can, and waits until
// it says on its standard output where it can be reached.

/** A program that prints nothing for this long after its start has failed. */
const READY_WITHIN_MS = 60_000

/** The path of a compiled program of this package. Compiled, because a TypeScript loader would add threads of its own to what is measured. */
export function compiled(program: string): string {
  return fileURLToPath(new URL(`../dist/${program}.js`, import.meta.url))
}

/** Starts a program of this package. Rejects with its log tail when it ends or stays silent instead of becoming ready. */
export async function startProgram(program: string, options: Pick<ProcessOptions, 'cores' | 'env'>) {
  const started = startProcess({ entry: compiled(program), ...options })
  const { pid } = started
  /** Kills it with all that it started: it keeps nothing, and would hash on for callers that are long gone. */
  const close = async () => {
    killGroup(pid)
    await started.exited
  }
  try {
    const ready = await started.waitForLog(({ url }) => typeof url === 'string', READY_WITHIN_MS)
    started.keepOnly('nothing')
    return {
      pid,
      /** The line that it printed when it was ready: JSON with `url`. */
      ready,
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

function killGroup(leaderPid: number): void {
  try {
    process.kill(-leaderPid, 'SIGKILL')
  } catch {
    // It has ended, and left nothing.
  }
}

/** Starts `contenders/rivals/<name>`, which serves the whole API and says which processes it consists of. */
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

/** Embedded servers, which have their cores too, by their ports; of PostgreSQL, the process that starts all others. */
export function serverProcesses({ databaseUrl, redisUrl }: Services): Part[] {
  const [postgres] = findPids('postgres', `-p ${new URL(databaseUrl).port}`)
  const [redis] = findPids('-server', `:${new URL(redisUrl).port}`)
  return [
    ...(postgres === undefined ? [] : [{ role: 'postgres', pid: postgres }]),
    ...(redis === undefined ? [] : [{ role: 'redis', pid: redis }]),
  ]
}
