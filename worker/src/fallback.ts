/**
 * The fallback of a gateway: while no worker is alive, the gateway starts a worker as a child process, which shares neither its event
 * loop nor its thread pool. The child takes jobs from the queue like any other worker.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { childVariables } from '@spillway/common/child-environment'
import type { Logger } from '@spillway/common/log'
import { WORKER_VARIABLES } from './config.js'

/** A setting of workers, or of OpenTelemetry: the fallback worker sends its traces where the gateway does. */
const isOfWorker = (name: string): boolean => WORKER_VARIABLES.includes(name) || /^OTEL_\w+$/.test(name)

const CHECK_INTERVAL_MS = 250
/** How long there must be no worker before the fallback starts: a worker that merely restarts is not replaced. */
const START_AFTER_MS = 500
/** A fallback that ended by itself is started again after twice as long each time, unless it had run for a while. */
const RESTART_MAX_MS = 30_000
const RAN_FOR_A_WHILE_MS = 10_000

export interface Fallback {
  /** Whether the fallback worker runs. */
  active(): boolean
  close(): Promise<void>
}

export interface FallbackOptions {
  /** Jobs that it hashes at a time; 0 turns the fallback off. */
  concurrency: number
  /** The environment of this process, from which the fallback worker takes keys, addresses and policy. */
  env: NodeJS.ProcessEnv
  /** Whether Redis is reachable and no worker is alive. */
  lacksWorkers(): boolean
  log: Logger
}

export function startFallback({ concurrency, env, lacksWorkers, log }: FallbackOptions): Fallback {
  if (concurrency === 0) return { active: () => false, close: async () => undefined }
  let running: ChildProcess | undefined
  let noWorkersSince: number | undefined
  let startAfterMs = START_AFTER_MS

  function start(): void {
    log.warn({ concurrency }, 'no worker is alive: starting the fallback worker')
    try {
      running = startProcess()
    } catch (error) {
      // fork() throws for some system errors, such as ENOMEM, and emits 'error' for others.
      failed(error)
    }
  }

  function failed(error: unknown): void {
    log.error({ err: error }, 'the fallback worker cannot be started')
    // Delays the next attempt: a system error is likely to repeat at once.
    noWorkersSince = performance.now()
  }

  function startProcess(): ChildProcess {
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
    const startedAt = performance.now()
    const gone = () => {
      if (running === child) running = undefined
      if (child.killed) return
      const ranFor = performance.now() - startedAt
      startAfterMs = ranFor > RAN_FOR_A_WHILE_MS ? START_AFTER_MS : Math.min(2 * startAfterMs, RESTART_MAX_MS)
      noWorkersSince = performance.now()
    }
    child.once('exit', gone)
    child.on('error', (error) => {
      // A process that never started emits no 'exit'.
      if (child.pid === undefined) gone()
      failed(error)
    })
    return child
  }

  async function stop(): Promise<void> {
    const child = running
    if (child === undefined || child.exitCode !== null) return
    const exited = new Promise((resolve) => child.once('exit', resolve))
    // `killed` says that SIGTERM was sent already.
    if (!child.killed) child.kill('SIGTERM')
    await exited
  }

  const timer = setInterval(() => {
    if (!lacksWorkers()) {
      noWorkersSince = undefined
      startAfterMs = START_AFTER_MS
      if (running !== undefined && !running.killed) {
        log.info('workers are alive again: stopping the fallback worker')
        void stop()
      }
      return
    }
    noWorkersSince ??= performance.now()
    if (running === undefined && performance.now() - noWorkersSince >= startAfterMs) start()
  }, CHECK_INTERVAL_MS)

  return {
    active: () => running !== undefined,
    async close() {
      clearInterval(timer)
      await stop()
    },
  }
}

/** Node's options without --env-file, which would load the gateway's variables, and --inspect, whose port is taken. */
function childNodeOptions(options: string[]): string[] {
  const left: string[] = []
  for (let n = 0; n < options.length; n += 1) {
    const option = options[n] ?? ''
    if (/^--env-file(-if-exists)?$/.test(option)) n += 1
    else if (!/^--(env-file|inspect)/.test(option)) left.push(option)
  }
  return left
}
