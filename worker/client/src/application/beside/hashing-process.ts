/** Starts the hashing process beside an application, which shares neither its event loop nor its thread pool. backend.ts restarts it. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { childVariables } from '@spillway/common/child-environment'
import { within } from '@spillway/common/within'
import type {
  BesideCancellation,
  BesideMessage,
  BesidePing,
  BesideRequest,
  BesideSettings,
} from '@spillway/queue/wire/beside'

/** How long the process may take to end by itself: the hashes in its threads are finished first. */
const END_MS = 1_000
/** How often a process that is needed is asked whether it lives. */
const PING_MS = 1_000
/**
 * How many times it may leave that unanswered, once it was ready and before: then it is killed. On a machine without a free core a process
 * may get no core for seconds. Times, not time: an application that was busy itself finds the answers when it continues.
 */
const UNANSWERED = { ready: 15, starting: 60 }

const BUNDLED =
  'a bundler took @spillway/client in, without the program that hashes: have it leave the package out (external, or serverExternalPackages in Next.js), and install that where the bundle runs'

export interface HashingProcess {
  send(message: BesideRequest | BesideCancellation): void
  close(): Promise<void>
}

export interface HashingProcessOptions {
  program: URL
  settings: BesideSettings
  /** Whether calls wait for the process. */
  isNeeded(): boolean
  /** The process said something. */
  told(message: Exclude<BesideMessage, { kind: 'alive' }>): void
  /** The process ended, or could not be started; called once. */
  ended(reason: string): void
}

/** Starts one process. It does not keep this one alive, and ends with it. */
export function startHashingProcess({
  program,
  settings,
  isNeeded,
  told,
  ended,
}: HashingProcessOptions): HashingProcess {
  let isOver = false
  let isReady = false
  let unanswered = 0
  const end = (reason: string) => {
    if (!isOver) ended(reason)
    isOver = true
  }
  const { NODE_OPTIONS: _, ...withoutNodeOptions } = process.env
  let child: ChildProcess
  if (!existsSync(program)) {
    queueMicrotask(() => {
      told({ kind: 'unfit', code: 'not_installed', reason: BUNDLED })
      end(BUNDLED)
    })
    return { send: () => undefined, close: async () => undefined }
  }
  try {
    child = fork(fileURLToPath(program), [JSON.stringify(settings)], {
      env: childVariables(withoutNodeOptions),
      execArgv: packageMap(),
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
  } catch (error) {
    // fork() throws for some system errors, such as ENOMEM, and emits 'error' for others. `ended` is called when the caller has the result.
    queueMicrotask(() => end(messageOf(error)))
    return { send: () => undefined, close: async () => undefined }
  }
  child.unref()
  // bun's channel keeps nothing alive, and has no unref().
  child.channel?.unref?.()
  child.on('message', (message: BesideMessage) => {
    unanswered = 0
    isReady ||= message.kind === 'ready'
    if (message.kind !== 'alive') told(message)
  })
  child.once('exit', (code, signal) => {
    clearInterval(timer)
    const by = unanswered > UNANSWERED.ready ? ', because it did not answer' : ''
    end(signal === null ? `it exited with ${code}` : `it was ended by ${signal}${by}`)
  })
  child.on('error', (error) => {
    // A process that never started emits no 'exit'.
    if (child.pid !== undefined) return
    clearInterval(timer)
    end(error.message)
  })
  const timer = setInterval(() => {
    if (!isNeeded() || !child.connected) {
      unanswered = 0
      return
    }
    unanswered += 1
    // A signal alone ends a process that was stopped.
    if (unanswered > (isReady ? UNANSWERED.ready : UNANSWERED.starting)) child.kill('SIGKILL')
    else child.send({ ping: true } satisfies BesidePing, () => undefined)
  }, PING_MS)
  timer.unref()

  return {
    // A channel that closes this moment is followed by 'exit', which returns the calls.
    send: (message) => void child.send(message, () => undefined),
    async close() {
      isOver = true
      if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
      child.ref()
      const exited = once(child, 'exit').then(() => true)
      if (child.connected) child.disconnect()
      if ((await within(END_MS, exited)) === undefined) child.kill('SIGKILL')
      await exited
    },
  }
}

/**
 * Options of Node for the process. It takes no option of the application: its --eval or --import would run the application there. Under Yarn's
 * Plug'n'Play packages are found by a program that Node loads first.
 */
function packageMap(): string[] {
  if (process.versions.pnp === undefined) return []
  return ['--require', createRequire(import.meta.url).resolve('pnpapi')]
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const isDenied = 'code' in error && error.code === 'ERR_ACCESS_DENIED'
  return isDenied ? "Node's permission model denies it: it needs --allow-child-process" : error.message
}
