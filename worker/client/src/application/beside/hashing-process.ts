/** Starts the hashing process beside an application, which shares neither its event loop nor its thread pool. backend.ts restarts it. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { childVariables } from '../../child-environment.js'
import type { BesideCancellation, BesideMessage, BesideRequest, BesideSettings } from '../../protocol/beside.js'
import { within } from '../../within.js'

/** How long the process may take to end by itself: the hashes in its threads are finished first. */
const END_MS = 1_000

export interface HashingProcess {
  send(message: BesideRequest | BesideCancellation): void
  close(): Promise<void>
}

export interface HashingProcessOptions {
  program: URL
  settings: BesideSettings
  /** The process said something. */
  told(message: BesideMessage): void
  /** The process ended, or could not be started; called once. */
  ended(reason: string): void
}

/** Starts one process. It does not keep this one alive, and ends with it. */
export function startHashingProcess({ program, settings, told, ended }: HashingProcessOptions): HashingProcess {
  let isOver = false
  const end = (reason: string) => {
    if (!isOver) ended(reason)
    isOver = true
  }
  const { NODE_OPTIONS: _, ...withoutNodeOptions } = process.env
  let child: ChildProcess
  try {
    child = fork(fileURLToPath(program), [JSON.stringify(settings)], {
      env: childVariables(withoutNodeOptions),
      // None of the application's: its --eval or --import would run the application in the child.
      execArgv: [],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
  } catch (error) {
    // fork() throws for some system errors, such as ENOMEM, and emits 'error' for others. `ended` is called when the caller has the result.
    queueMicrotask(() => end(messageOf(error)))
    return { send: () => undefined, close: async () => undefined }
  }
  child.unref()
  child.channel?.unref()
  child.on('message', (message: BesideMessage) => told(message))
  child.once('exit', (code, signal) => end(signal === null ? `it exited with ${code}` : `it was ended by ${signal}`))
  // A process that never started emits no 'exit'.
  child.on('error', (error) => child.pid === undefined && end(error.message))

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

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
