// One program of the cluster: started with a log file, awaited until it answers, ended with this process at the latest.
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Keeper, stopOrder } from '@spillway/local/processes/keeper'
import { logTail } from '@spillway/local/processes/log-tail'
import { until } from '@spillway/local/processes/until'

export interface ServerOptions {
  keeper: Keeper
  name: string
  command: string
  args: string[]
  env?: NodeJS.ProcessEnv
  logDir: string
  /** Told when it ends before everything does. */
  onDeath(error: Error): void
  /** Resolves to true once it answers. */
  isReady(): Promise<boolean>
}

const READY_MS = 60_000

/** Starts a program and resolves once it answers. Rejects with its last words when it ends or does not answer in time. */
export async function startServer({
  keeper,
  name,
  command,
  args,
  env,
  logDir,
  onDeath,
  isReady,
}: ServerOptions): Promise<void> {
  const logFile = join(logDir, `${name}.log`)
  const logFd = openSync(logFile, 'w')
  const child = keeper.spawn({
    command,
    args,
    stopOrder: stopOrder.service,
    logFd,
    env: { PATH: process.env.PATH, HOME: logDir, ...env },
  })
  closeSync(logFd)
  const failure = (what: string): Error =>
    new Error(`${name} ${what}: ${logTail(readFileSync(logFile, 'utf8'))} (its log: ${logFile})`)
  const answered = await until(async () => child.exitCode !== null || (await isReady()), {
    timeoutMs: READY_MS,
    what: name,
  }).catch(() => false)
  if (child.exitCode !== null) throw failure(`ended with ${child.exitCode}`)
  if (!answered) throw failure('did not answer')
  child.once('exit', (code, signal) => {
    if (!keeper.closing) onDeath(failure(`ended (${signal ?? code}) while it was needed`))
  })
}
