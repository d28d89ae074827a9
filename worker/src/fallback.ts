/**
 * The door for gateways that would rather hash than refuse: while no worker is alive, a worker process is started here, apart
 * from the gateway's event loop and its thread pool. It takes jobs from the queue like any other, so nothing else changes.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { WORKER_VARIABLES } from './config.js'
import type { Logger } from './process/log.js'

const CHECK_INTERVAL_MS = 250
/** For so long nothing may be heard of any worker: one that restarts is not replaced. */
const PATIENCE_MS = 500

/** What Node, its TLS, the system's libraries and the SDK for traces read themselves. */
const RUNTIME_VARIABLE = /^(PATH|HOME|TZ|LANG|TMPDIR|GLIBC_TUNABLES|(NODE|SSL|LC|LD|MALLOC|OTEL)_\w+)$/

export interface Fallback {
  /** Whether the stand-in is running. */
  active(): boolean
  close(): Promise<void>
}

export interface FallbackOptions {
  /** Jobs it hashes at a time; 0 starts nothing, ever. */
  concurrency: number
  /** The environment of this process, from which the stand-in takes keys, addresses and policy. */
  env: NodeJS.ProcessEnv
  /** Whether Redis is reachable and knows of no worker. */
  isAlone(): boolean
  log: Logger
}

export function startFallback({ concurrency, env, isAlone, log }: FallbackOptions): Fallback {
  if (concurrency === 0) return { active: () => false, close: async () => undefined }
  let standIn: ChildProcess | undefined
  let aloneSince: number | undefined

  function start(): void {
    log.warn({ concurrency }, 'no worker is alive: hashing here until one is')
    try {
      standIn = startProcess()
    } catch (error) {
      // Node throws some of what the system refuses, a lack of memory for one, and has the process tell the rest.
      failed(error)
    }
  }

  function failed(error: unknown): void {
    log.error({ err: error }, 'the fallback worker cannot be started')
    // Not at every check: what the system refuses now it will refuse for a while.
    aloneSince = performance.now()
  }

  function startProcess(): ChildProcess {
    const child = fork(fileURLToPath(new URL('./main.cjs', import.meta.url)), {
      execArgv: ownOptions(process.execArgv),
      env: {
        ...ofWorker(env),
        WORKER_CONCURRENCY: String(concurrency),
        OPS_HOST: '127.0.0.1',
        OPS_PORT: '0',
        SPILLWAY_FALLBACK: 'true',
      },
    })
    const gone = () => {
      if (standIn === child) standIn = undefined
    }
    child.once('exit', gone)
    child.on('error', (error) => {
      // One that was never started does not exit either.
      if (child.pid === undefined) gone()
      failed(error)
    })
    return child
  }

  async function stop(): Promise<void> {
    const child = standIn
    if (child === undefined || child.exitCode !== null) return
    const exited = new Promise((resolve) => child.once('exit', resolve))
    // A second signal would end it in the middle of its jobs.
    if (!child.killed) child.kill('SIGTERM')
    await exited
  }

  const timer = setInterval(() => {
    if (!isAlone()) {
      aloneSince = undefined
      if (standIn !== undefined && !standIn.killed) {
        log.info('workers are back: hashing here no more')
        void stop()
      }
      return
    }
    aloneSince ??= performance.now()
    if (standIn === undefined && performance.now() - aloneSince >= PATIENCE_MS) start()
  }, CHECK_INTERVAL_MS)

  return {
    active: () => standIn !== undefined,
    async close() {
      clearInterval(timer)
      await stop()
    },
  }
}

/** What a worker has a use for: the rest of a gateway's environment is its database and its signing keys. */
function ofWorker(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(env).filter(([name]) => WORKER_VARIABLES.includes(name) || RUNTIME_VARIABLE.test(name)),
  )
}

/** Node's options but for files of variables, which would bring all of them back, and an inspector, which has its port. */
function ownOptions(options: string[]): string[] {
  const left: string[] = []
  for (let n = 0; n < options.length; n += 1) {
    const option = options[n] ?? ''
    if (/^--env-file(-if-exists)?$/.test(option)) n += 1
    else if (!/^--(env-file|inspect)/.test(option)) left.push(option)
  }
  return left
}
