// Runs a server as a process: starts it, waits until it answers, stops it.
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import type { Keeper, KeptProcess } from '../processes/keeper.ts'
import { stopOrder } from '../processes/keeper.ts'
import { logTailOf } from '../processes/log-tail.ts'
import { until } from '../processes/until.ts'
import { UserError } from '../processes/user-error.ts'

export interface Service {
  /** The URL for clients, with the password. */
  url: string
  /** Resolves when its process has ended, for any reason. */
  exited: Promise<unknown>
  close(): Promise<void>
}

export interface ServiceProcess {
  keeper: Keeper
  /** The name for messages, such as PostgreSQL. */
  name: string
  process: Omit<KeptProcess, 'stopOrder' | 'logFd'>
  /** Written to its standard input. */
  input?: string
  /** Receives its output. */
  logFile: string
  url: string
  /** Rejects, or resolves to false, while the service does not answer. */
  ping(url: string): Promise<unknown>
}

const readyMs = 60_000
const closeMs = 15_000

/** Starts a server and resolves once it answers. Rejects with a UserError that contains its log tail if it ends before that. */
export async function startService({ keeper, name, logFile, url, ...what }: ServiceProcess): Promise<Service> {
  const logFd = openSync(logFile, 'w')
  const child = keeper.spawn({ ...what.process, stopOrder: stopOrder.service, logFd })
  closeSync(logFd)
  child.stdin?.on('error', () => {})
  child.stdin?.end(what.input)

  let ended = child.pid === undefined
  const exited = ended ? Promise.resolve() : once(child, 'exit').then(() => (ended = true))
  const answered = await until(() => ended || what.ping(url).then((answer) => answer !== false), {
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
  await close()
  throw new UserError(`${name} did not start: ${logTailOf(logFile)} (its log: ${logFile})`)
}
