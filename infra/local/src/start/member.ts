// A gateway or worker as a process of its own, from compiled code. One that dies after it was ready is reported and
// started again, as a cluster would; one that does not become ready ends the run.
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
  /** Its name on the screen: gateway 1. */
  name: string
  program: Program
  env: NodeJS.ProcessEnv
  /** What its ready line adds to env for those that are started in its place. */
  envAgain?: (ready: ReadyLine) => NodeJS.ProcessEnv
  logFile: string
  /** Told of every death. */
  say: (sentence: string) => void
  /** Told when it could not be started again. */
  fail: (error: unknown) => void
}

/** The log line by which a gateway or worker says that it is ready. */
export type ReadyLine = Record<string, unknown>

const readyMs = 30_000
/** The pause before a dead member is started again, so that one that dies at once does not keep a processor busy. */
const restartMs = 1_000

/** Starts a member and resolves with its ready line. Rejects with a UserError, its last words in it, if that does not come. */
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
        `${name} ended (${signal ?? `exit code ${code}`}) and is started again. Its last words: ${logTailOf(logFile)}`,
      )
      await sleep(restartMs)
      if (!keeper.closing) await startMember({ ...options, env: { ...env, ...envAgain?.(ready) } })
    })
    .catch(fail)
  return ready
}

function findLine(log: string, message: string): ReadyLine | undefined {
  // The last piece may be half a line.
  for (const line of log.split('\n').slice(0, -1)) {
    if (!line.includes(message)) continue
    const value: unknown = JSON.parse(line)
    if (typeof value === 'object' && value !== null && 'msg' in value && value.msg === message) return { ...value }
  }
  return undefined
}
