/** Starts the process beside an application, with an event loop and a thread pool of its own. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { within } from '@spillway/common/within'
import type {
  BesideCancellation,
  BesideMessage,
  BesidePing,
  BesideRequest,
  BesideSettings,
} from '@spillway/queue/wire/beside'
import { NOT_THE_PROGRAM, ONE_FILE, PROGRAM_VARIABLE } from './one-file.js'

/** How long the process may take to end by itself: the hashes in its threads are finished first. */
const END_MS = 1_000
/** The interval of pings to a process that is needed. */
const PING_MS = 1_000
/**
 * A process is killed after this many unanswered pings: once it is ready, and before. Without a
 * free core it may stand still for seconds, and the application may be busy itself.
 */
const UNANSWERED = { ready: 15, starting: 60 }

/** What Node, OpenSSL and the C library read: no secrets, and no NODE_OPTIONS, which are the application's. */
const RUNTIME_VARIABLE = /^(PATH|HOME|TZ|LANG|TMPDIR|GLIBC_TUNABLES|(NODE(?!_OPTIONS$)|SSL|LC|LD|MALLOC)_\w+)$/

const BUNDLED =
  'a bundler took @spillway/client in, without the program that hashes: have it leave the package out (external, or serverExternalPackages in Next.js), and install that where the bundle runs'

/** Whether the fork started this application once more: then no fork is tried again. */
let wasApplication = false

export interface HashingProcess {
  send(message: BesideRequest | BesideCancellation): void
  close(): Promise<void>
}

export interface HashingProcessOptions {
  program: URL
  settings: BesideSettings
  /** Whether calls wait for the process. */
  isNeeded(): boolean
  /** Called with each message of the process. */
  told(message: Exclude<BesideMessage, { kind: 'alive' }>): void
  /** Called once, when the process ended or could not be started. */
  ended(reason: string): void
}

/** One process. It does not keep this one alive, and ends with it. */
export class ForkedProcess implements HashingProcess {
  readonly #options: HashingProcessOptions
  /** Undefined if it could not be started. */
  readonly #child: ChildProcess | undefined
  #pings: NodeJS.Timeout | undefined
  #isOver = false
  #isReady = false
  #unanswered = 0

  constructor(options: HashingProcessOptions) {
    this.#options = options
    this.#child = this.#fork(options)
    if (this.#child !== undefined) this.#watch(this.#child)
  }

  /** Calls `told` and `ended` only after the caller has the result. */
  #fork({ program, settings, told }: HashingProcessOptions): ChildProcess | undefined {
    const reason = wasApplication ? ONE_FILE : existsSync(program) ? undefined : BUNDLED
    if (reason !== undefined) {
      queueMicrotask(() => {
        told({ kind: 'unfit', code: 'not_installed', reason })
        this.#end(reason)
      })
      return undefined
    }
    const runtime = Object.entries(process.env).filter(([name]) => RUNTIME_VARIABLE.test(name))
    const file = fileURLToPath(program)
    try {
      return fork(file, [JSON.stringify(settings)], {
        env: { ...Object.fromEntries(runtime), [PROGRAM_VARIABLE]: file },
        // Without the options of the application: --eval or --import would run it there.
        execArgv: [],
        stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      })
    } catch (error) {
      // fork() throws for some system errors, such as ENOMEM, and emits 'error' for others.
      queueMicrotask(() => this.#end(messageOf(error)))
      return undefined
    }
  }

  #watch(child: ChildProcess): void {
    child.unref()
    // bun's channel keeps nothing alive, and has no unref().
    child.channel?.unref?.()
    child.on('message', (message: BesideMessage) => {
      this.#unanswered = 0
      this.#isReady ||= message.kind === 'ready'
      if (message.kind !== 'alive') this.#options.told(message)
    })
    child.once('exit', (code, signal) => {
      wasApplication ||= code === NOT_THE_PROGRAM
      if (wasApplication) this.#options.told({ kind: 'unfit', code: 'not_installed', reason: ONE_FILE })
      const by = this.#unanswered > UNANSWERED.ready ? ', because it did not answer' : ''
      this.#end(signal === null ? `it exited with ${code}` : `it was ended by ${signal}${by}`)
    })
    child.on('error', (error) => {
      // A process that never started emits no 'exit'.
      if (child.pid === undefined) this.#end(error.message)
    })
    this.#pings = setInterval(() => this.#ping(child), PING_MS)
    this.#pings.unref()
  }

  #ping(child: ChildProcess): void {
    if (!this.#options.isNeeded() || !child.connected) {
      this.#unanswered = 0
      return
    }
    this.#unanswered += 1
    // Only a signal ends a process that was stopped.
    if (this.#unanswered > (this.#isReady ? UNANSWERED.ready : UNANSWERED.starting)) child.kill('SIGKILL')
    else child.send({ ping: true } satisfies BesidePing, () => undefined)
  }

  #end(reason: string): void {
    clearInterval(this.#pings)
    if (!this.#isOver) this.#options.ended(reason)
    this.#isOver = true
  }

  /** If the channel closes now, 'exit' follows, which returns the calls. */
  send(message: BesideRequest | BesideCancellation): void {
    this.#child?.send(message, () => undefined)
  }

  async close(): Promise<void> {
    this.#isOver = true
    const child = this.#child
    if (child === undefined || child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
    child.ref()
    const exited = once(child, 'exit').then(() => true)
    if (child.connected) child.disconnect()
    if ((await within(END_MS, exited)) === undefined) child.kill('SIGKILL')
    await exited
  }
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const isDenied = 'code' in error && error.code === 'ERR_ACCESS_DENIED'
  return isDenied ? "Node's permission model denies it: it needs --allow-child-process" : error.message
}

// Hashing in this process for tests: on libuv's threads, by the same code.

/** The file is beside the program of the process. */
const FILE = './hashing-in-place.cjs'

/** What the file exports. */
interface InPlace {
  open(settings: BesideSettings, say: (message: BesideMessage) => void): Promise<Take | undefined>
}
type Take = (message: BesideRequest | BesideCancellation) => void

/** @param program a file in the same folder */
function loadInPlace(program: URL): InPlace {
  return createRequire(import.meta.url)(fileURLToPath(new URL(FILE, program)))
}

/** Replaces a process. It does not keep this one alive. */
export class HashingInPlace implements HashingProcess {
  readonly #opening: Promise<Take | undefined>
  #isClosed = false

  constructor({ program, settings, told, ended }: HashingProcessOptions) {
    this.#opening = this.#open(program, settings, told)
    this.#opening.then(
      (take) => take ?? ended('nothing hashes in this process'),
      (error: unknown) => ended(error instanceof Error ? error.message : String(error)),
    )
  }

  async #open(program: URL, settings: BesideSettings, told: HashingProcessOptions['told']): Promise<Take | undefined> {
    return await loadInPlace(program).open(settings, (message) => {
      if (!this.#isClosed && message.kind !== 'alive') told(message)
    })
  }

  send(message: BesideRequest | BesideCancellation): void {
    this.#opening.then((take) => take?.(message)).catch(() => undefined)
  }

  async close(): Promise<void> {
    this.#isClosed = true
  }
}
