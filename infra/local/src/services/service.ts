// Runs a server as a process: starts it, waits until it answers, stops it.
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { type Keeper, stopOrder, type Tool } from '../processes/keeper.ts'
import { logTailOf } from '../processes/log-tail.ts'
import { until } from '../processes/until.ts'
import { UserError } from '../processes/user-error.ts'

export interface Service {
  /** The URL for clients, with the password. */
  url: string
  /** Resolves when its process has ended, for any reason, to its signal or exit code. */
  exited: Promise<string>
  close(): Promise<void>
}

export interface ServiceProcess {
  keeper: Keeper
  /** The name for messages, such as PostgreSQL. */
  name: string
  /** With its stopOrder [that of services]. */
  process: Tool & { stopOrder?: number }
  /** Written to its standard input. */
  input?: string
  /** Takes its output. */
  logFile: string
  /** Whether output of earlier processes in this file is kept [no]. */
  keepsLog?: boolean
  url: string
  /** Rejects, or resolves to false, while the service does not answer. */
  ping(url: string): Promise<unknown>
}

const readyMs = 60_000
const closeMs = 15_000

/** Starts a server and resolves once it answers. Rejects with a UserError that contains its log tail if it ends before that. */
export async function startService({
  keeper,
  name,
  logFile,
  keepsLog = false,
  url,
  ...what
}: ServiceProcess): Promise<Service> {
  const logFd = openSync(logFile, keepsLog ? 'a' : 'w')
  const child = keeper.spawn({ stopOrder: stopOrder.service, ...what.process, logFd })
  closeSync(logFd)
  child.stdin?.on('error', () => {})
  child.stdin?.end(what.input)

  let ended = child.pid === undefined ? 'not found' : undefined
  const exited = ended
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
  if (answered && !ended) return { url, exited, close }
  const how = ended ? ` (${ended})` : ''
  await close()
  throw new UserError(`${name} did not start${how}: ${logTailOf(logFile)} (its log: ${logFile})`)
}
