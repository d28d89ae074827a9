// Runs a gateway or worker as a process, from compiled code. A member that ends after it was ready is restarted, as in a cluster; one
// that does not become ready ends the run.
import { once } from 'node:events'
import { closeSync, openSync, readFileSync, statSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Keeper } from '../processes/keeper.ts'
import { logTailOf } from '../processes/log-tail.ts'
import { repositoryDir } from '../processes/repository.ts'
import { until } from '../processes/until.ts'
import { UserError } from '../processes/user-error.ts'
import type { Program } from './programs.ts'

export interface MemberOptions {
  keeper: Keeper
  /** The name on the screen, such as gateway 1. */
  name: string
  program: Program
  env: NodeJS.ProcessEnv
  /** Variables for restarts, from the ready line. */
  envAgain?: (ready: ReadyLine) => NodeJS.ProcessEnv
  logFile: string
  /** Prints a notice when it ends unexpectedly. */
  say: (sentence: string) => void
  /** Called when it could not be restarted. */
  fail: (error: unknown) => void
}

/** The log line by which a gateway or worker reports that it is ready. */
export type ReadyLine = Record<string, unknown>

const readyMs = 30_000
/** The pause before a restart, so that a member that ends at once does not keep a processor busy. */
const restartMs = 1_000

/** Starts a member and resolves with its ready line. Rejects with a UserError that contains its log tail if it does not become ready. */
export async function startMember(options: MemberOptions): Promise<ReadyLine> {
  const { keeper, name, program, env, envAgain, logFile, say, fail } = options
  const { entry, readyMessage, stopOrder } = program
  const logFd = openSync(logFile, 'a')
  const before = statSync(logFile).size
  const child = keeper.spawn({ command: process.execPath, args: [entry], stopOrder, env, cwd: repositoryDir, logFd })
  closeSync(logFd)
  child.stdin?.end()
  const log = (): string => readFileSync(logFile).subarray(before).toString()
  const exited = once(child, 'exit')
  const readyOrGone = () => findLine(log(), readyMessage) ?? (child.exitCode !== null || child.signalCode !== null)
  const ready = await until(readyOrGone, { timeoutMs: readyMs }).catch(() => false)
  if (typeof ready === 'boolean') {
    const end = child.signalCode ?? child.exitCode
    const what = end === null ? 'did not become ready' : `ended (${end}) before it was ready`
    throw new UserError(`${name} ${what}: ${logTailOf(logFile)} (its log: ${logFile})`)
  }
  exited
    .then(async ([code, signal]) => {
      if (keeper.closing) return
      say(
        `${name} ended (${signal ?? `exit code ${code}`}) and is started again. Its log ends with: ${logTailOf(logFile)}`,
      )
      await sleep(restartMs)
      if (!keeper.closing) await startMember({ ...options, env: { ...env, ...envAgain?.(ready) } })
    })
    .catch(fail)
  return ready
}

function findLine(log: string, message: string): ReadyLine | undefined {
  // The last line may be incomplete.
  for (const line of log.split('\n').slice(0, -1)) {
    if (!line.includes(message)) continue
    const value: unknown = JSON.parse(line)
    if (typeof value === 'object' && value !== null && 'msg' in value && value.msg === message) return { ...value }
  }
  return undefined
}
