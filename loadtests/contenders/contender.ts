// A contender is one login architecture that the scenarios can start and measure.
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { canPin } from '@spillway/infra/processes/cores'
import { type ProcessOptions, startProcess } from '@spillway/infra/processes/node-process'
import type { Algorithm } from './hashing.ts'

/** Every core. Counted before anything is pinned: later this process sees its own cores only. */
export const allCores = Array.from({ length: availableParallelism() }, (_, n) => n)

/** The load generator's, with PostgreSQL. */
export const generatorCores = [0]

/** The contender's, with Redis; undefined where nothing can be pinned or there is only one. */
export const contenderCores = canPin && allCores.length > 1 ? allCores.slice(1) : undefined

/** How many cores a contender has. */
export const coreCount = (contenderCores ?? allCores).length

export interface StartOptions {
  /** Hashes new passwords; a login is verified by the algorithm of the account's hash. */
  algorithm: Algorithm
  databaseUrl: string
  redisUrl: string
  /** Of its processes, on top of what they need. */
  env?: NodeJS.ProcessEnv
}

export interface Running {
  url: string
  /** A GET path beside logins that asks the file system, and so needs libuv's threads. */
  neighbourPath: string
  /** The process that serves logins, and Spillway's worker. */
  pids: { gateway: number; worker?: number }
  /** Ends every process. Safe to call twice. */
  close(): Promise<void>
}

export interface Contender {
  /** Its name on the command line. */
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

/** A program that prints nothing for this long after its start has failed. */
const READY_WITHIN_MS = 60_000

/** The path of a compiled program: a TypeScript loader would add threads to the measurement. */
export function compiled(program: string): string {
  return fileURLToPath(new URL(`../dist/${program}.js`, import.meta.url))
}

/** Starts a program on the contender's cores, until it prints its URL as a line of JSON. */
export async function startProgram(program: string, env: ProcessOptions['env'] = {}): Promise<Running> {
  const started = startProcess({ entry: compiled(program), cores: contenderCores, env })
  /** Kills it with its children, which would hash on for callers that are gone. */
  async function close(): Promise<void> {
    try {
      process.kill(-started.pid, 'SIGKILL')
    } catch {
      // It has ended, and left nothing.
    }
    await started.exited
  }
  try {
    const { url } = await started.waitForLog((line) => typeof line.url === 'string', READY_WITHIN_MS)
    started.keepOnly('nothing')
    return { url: String(url), neighbourPath: '/neighbour', pids: { gateway: started.pid }, close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Starts `contenders/rivals/<name>`, which serves the API. */
export async function startRival(
  name: string,
  { algorithm, databaseUrl }: StartOptions,
  env: Record<string, string> = {},
): Promise<Running> {
  return startProgram(`contenders/rivals/${name}`, { DATABASE_URL: databaseUrl, ALGORITHM: algorithm, ...env })
}
