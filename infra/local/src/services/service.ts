// Runs a server as a process: starts it, waits until it answers, stops it, and starts it again.
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { UserError } from '../processes/command-line.ts'
import { type Keeper, logTailOf, stopOrder, type Tool } from '../processes/keeper.ts'
import { until } from '../processes/until.ts'

export interface ProgramOptions {
  keeper: Keeper
  dir: string
  say: (sentence: string) => void
}

export interface ServiceOptions extends ProgramOptions {
  logFile: string
  /** Used if it is free [any port]. */
  preferredPort?: number | undefined
  /** False is faster: a crash of the machine may lose the data. */
  durable: boolean
}

interface ServiceProcess {
  keeper: Keeper
  name: string
  process: Tool & { stopOrder?: number }
  input?: string
  logFile: string
  url: string
  /** Rejects, or resolves to false, while the service does not answer. */
  ping(url: string): Promise<unknown>
}

const readyMs = 60_000
const closeMs = 15_000

export type Service = Awaited<ReturnType<typeof startService>>

/** Resolves once it answers. Rejects with a UserError and its log tail if it ends before that. */
export async function startService(options: ServiceProcess) {
  let running = await launch(options)
  return {
    url: options.url,
    /** Resolves when its first process has ended, for any reason, to its signal or exit code. */
    exited: running.exited,
    pid: () => running.child.pid,
    signal: (name: NodeJS.Signals): void => void running.child.kill(name),
    /** SIGKILL; resolves when it is gone. */
    async kill(): Promise<void> {
      running.child.kill('SIGKILL')
      await running.exited
    },
    /** Starts it again, on the same port and data; resolves when it answers. */
    async start(): Promise<void> {
      running = await launch(options)
    },
    close: (): Promise<void> => running.close(),
  }
}

async function launch({ keeper, name, logFile, url, ...what }: ServiceProcess) {
  const logFd = openSync(logFile, 'a')
  const child = keeper.spawn({ stopOrder: stopOrder.service, ...what.process, logFd })
  closeSync(logFd)
  child.stdin?.on('error', () => {})
  child.stdin?.end(what.input)

  let ended = child.pid === undefined ? 'not found' : undefined
  const exited: Promise<string> = ended
    ? Promise.resolve(ended)
    : once(child, 'exit').then(([code, signal]) => (ended = signal ?? `exit code ${code}`))
  const answered = await until(() => ended !== undefined || what.ping(url).then((answer) => answer !== false), {
    timeoutMs: readyMs,
    what: name,
  }).catch(() => false)

  const close = async (): Promise<void> => {
    if (ended) return
    child.kill(what.process.signal)
    const timer = setTimeout(() => child.kill('SIGKILL'), closeMs)
    await exited
    clearTimeout(timer)
  }
  if (answered && !ended) return { child, exited, close }
  const how = ended ? ` (${ended})` : ''
  await close()
  throw new UserError(`${name} did not start${how}: ${logTailOf(logFile)} (its log: ${logFile})`)
}
