// A contender is one login architecture that the scenarios can start, address and measure.
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

/** A process that belongs to a contender, for measuring its processor time. */
export interface Part {
  /** Its role in the architecture, such as `api` or `worker`. */
  role: string
  pid: number
  /** Its children count as well; otherwise they are parts of their own. */
  withChildren?: boolean
  /** From its start until it was ready, in milliseconds, where it was started here. */
  readyMs?: number
}

export interface Running {
  url: string
  /** All its URLs, if there are several. */
  urls?: readonly string[]
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
