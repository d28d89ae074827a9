/** The fallback of a gateway: a worker as its child process, while no other worker is alive. */
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Logger } from '@spillway/common/log'
import { childVariables } from '@spillway/common/settings'
import { WORKER_VARIABLES } from './config.js'

/** A setting of workers or of OpenTelemetry: traces go where the gateway's go. */
const isOfWorker = (name: string): boolean => WORKER_VARIABLES.includes(name) || /^OTEL_\w+$/.test(name)

const CHECK_INTERVAL_MS = 250
/** How long there must be no worker: a worker that merely restarts is not replaced. */
const START_AFTER_MS = 500
/** A fallback that ends early starts again, after twice as long each time. */
const RESTART_MAX_MS = 30_000
const RAN_FOR_A_WHILE_MS = 10_000

export interface FallbackOptions {
  /** Jobs that it hashes at a time; 0 turns the fallback off. */
  concurrency: number
  env: NodeJS.ProcessEnv
  /** Whether Redis is reachable and no worker is alive. */
  lacksWorkers(): boolean
  log: Logger
}

/** Watches from its construction until it is closed. */
export class Fallback {
  readonly #options: FallbackOptions
  readonly #timer: NodeJS.Timeout | undefined
  #running: ChildProcess | undefined
  #noWorkersSince: number | undefined
  #startAfterMs = START_AFTER_MS

  constructor(options: FallbackOptions) {
    this.#options = options
    if (options.concurrency > 0) this.#timer = setInterval(() => this.#check(), CHECK_INTERVAL_MS)
  }

  active(): boolean {
    return this.#running !== undefined
  }

  /** Has the fallback worker read its keys again. */
  hangUp(): void {
    // `kill` of the child would count as its end.
    const { pid, exitCode } = this.#running ?? {}
    if (pid !== undefined && exitCode === null) process.kill(pid, 'SIGHUP')
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#stop()
  }

  #check(): void {
    const { lacksWorkers, log } = this.#options
    if (!lacksWorkers()) {
      this.#noWorkersSince = undefined
      this.#startAfterMs = START_AFTER_MS
      if (this.#running === undefined || this.#running.killed) return
      log.info('workers are alive again: stopping the fallback worker')
      void this.#stop()
      return
    }
    this.#noWorkersSince ??= performance.now()
    if (this.#running === undefined && performance.now() - this.#noWorkersSince >= this.#startAfterMs) this.#start()
  }

  #start(): void {
    const { concurrency, env, log } = this.#options
    log.warn({ concurrency }, 'no worker is alive: starting the fallback worker')
    try {
      const child = fork(fileURLToPath(new URL('./main.cjs', import.meta.url)), {
        execArgv: childNodeOptions(process.execArgv),
        env: {
          // It must not get the gateway's database URL and signing keys.
          ...childVariables(env, isOfWorker),
          WORKER_CONCURRENCY: String(concurrency),
          OPS_HOST: '127.0.0.1',
          OPS_PORT: '0',
          SPILLWAY_FALLBACK: 'true',
        },
      })
      this.#running = child
      this.#watch(child)
    } catch (error) {
      // fork() throws for some system errors, such as ENOMEM, and emits 'error' for others.
      this.#failed(error)
    }
  }

  #failed(error: unknown): void {
    this.#options.log.error({ err: error }, 'the fallback worker cannot be started')
    // Delays the next attempt: a system error is likely to repeat at once.
    this.#noWorkersSince = performance.now()
  }

  #watch(child: ChildProcess): void {
    const startedAt = performance.now()
    const gone = () => {
      if (this.#running === child) this.#running = undefined
      if (child.killed) return
      const hasRun = performance.now() - startedAt > RAN_FOR_A_WHILE_MS
      this.#startAfterMs = hasRun ? START_AFTER_MS : Math.min(2 * this.#startAfterMs, RESTART_MAX_MS)
      this.#noWorkersSince = performance.now()
    }
    child.once('exit', gone)
    child.on('error', (error) => {
      // A process that never started emits no 'exit'.
      if (child.pid === undefined) gone()
      this.#failed(error)
    })
  }

  async #stop(): Promise<void> {
    const child = this.#running
    if (child === undefined || child.exitCode !== null) return
    const exited = new Promise((resolve) => child.once('exit', resolve))
    // `killed` says that SIGTERM was sent already.
    if (!child.killed) child.kill('SIGTERM')
    await exited
  }
}

/** Without --env-file, which would load the gateway's variables, and --inspect (its port). */
function childNodeOptions(options: string[]): string[] {
  const left: string[] = []
  for (let n = 0; n < options.length; n += 1) {
    const option = options[n] ?? ''
    if (/^--env-file(-if-exists)?$/.test(option)) n += 1
    else if (!/^--(env-file|inspect)/.test(option)) left.push(option)
  }
  return left
}
