/** Signals of a process, and its shutdown in steps of limited time. */

import type { Logger } from './log.js'
import { within } from './within.js'

/** How long to wait for the last log lines: their reader may be gone. */
const LOG_FLUSH_MS = 1_000
/** The time of a step is counted in such slices: a machine that stands still meanwhile takes one of them. */
const SLICE_MS = 100

// Node's own handler of SIGUSR1 opens its inspector, which would expose the memory of the process.
// A listener replaces it; Node 20 has no --disable-sigusr1.
process.on('SIGUSR1', () => undefined)

export class Shutdown {
  readonly #process: 'gateway' | 'worker'
  readonly #log: Pick<Logger, 'warn'>
  readonly #failed: { name: string; error: unknown }[] = []

  constructor(process: 'gateway' | 'worker', log: Pick<Logger, 'warn'>) {
    this.#process = process
    this.#log = log
  }

  /** Runs one step. Logs failures and steps longer than `timeMs`; then the next step can run. */
  async step(name: string, timeMs: number, work: () => unknown): Promise<void> {
    try {
      const done = Promise.resolve(work()).then(() => true as const)
      if (!(await endsWithin(timeMs, done))) throw new Error(`timed out after ${timeMs} ms`)
    } catch (error) {
      this.#failed.push({ name, error })
      this.#log.warn({ err: error, step: name }, `${this.#process} shutdown step failed`)
    }
  }

  /** One error for all steps that failed so far, with the first failure as its cause. */
  failure(): Error | undefined {
    const [first] = this.#failed
    return first && new Error(`could not ${this.#failed.map(({ name }) => name).join(', ')}`, { cause: first.error })
  }
}

async function endsWithin(timeMs: number, done: Promise<true>): Promise<boolean> {
  for (let leftMs = timeMs; leftMs > 0; leftMs -= SLICE_MS) {
    if (await within(Math.min(SLICE_MS, leftMs), done)) return true
  }
  return false
}

/**
 * Closes at the first SIGTERM or SIGINT and ends the process: with 0, or with 1 when closing
 * failed. It closes once: a terminal and a process manager may both send a signal. `interrupted` is
 * aborted by any SIGINT, also a later one: somebody waits at a terminal.
 */
export function closeOnSignal(
  name: 'gateway' | 'worker',
  log: Logger,
  close: (interrupted: AbortSignal) => Promise<void>,
): void {
  let isStopping = false
  const interruption = new AbortController()
  async function stop(signal: NodeJS.Signals): Promise<void> {
    if (signal === 'SIGINT') interruption.abort()
    if (isStopping) return
    isStopping = true
    log.info({ signal }, `${name} stopping`)
    let code = 0
    try {
      await close(interruption.signal)
    } catch (error) {
      code = 1
      log.error({ err: error }, `${name} not closed in order`)
    }
    await within(LOG_FLUSH_MS, new Promise<void>((resolve) => log.flush(() => resolve())))
    process.exit(code)
  }
  process.on('SIGTERM', stop).on('SIGINT', stop)
}
