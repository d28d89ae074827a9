// Runs a gateway or worker as a process, from compiled code. A member that ends after it was ready is restarted, as in a cluster; one
// that does not become ready ends the run.
import { existsSync, readFileSync, statSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Keeper } from '../processes/keeper.ts'
import { logTailOf } from '../processes/log-tail.ts'
import { repositoryDir } from '../processes/repository.ts'
import { startService } from '../services/service.ts'
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

/** The pause before a restart, so that a member that ends at once does not keep a processor busy. */
const restartMs = 1_000

/** Starts a member and resolves with its ready line. Rejects with a UserError that contains its log tail if it does not become ready. */
export async function startMember(options: MemberOptions): Promise<ReadyLine> {
  const { keeper, name, program, env, envAgain, logFile, say, fail } = options
  const before = existsSync(logFile) ? statSync(logFile).size : 0
  let ready: ReadyLine = {}
  const { exited } = await startService({
    keeper,
    name,
    logFile,
    keepsLog: true,
    url: '',
    process: {
      command: process.execPath,
      args: [program.entry],
      stopOrder: program.stopOrder,
      env,
      cwd: repositoryDir,
    },
    async ping() {
      const line = findLine(readFileSync(logFile).subarray(before).toString(), program.readyMessage)
      if (line) ready = line
      return line !== undefined
    },
  })
  exited
    .then(async (how) => {
      if (keeper.closing) return
      say(`${name} ended (${how}) and is started again. Its log ends with: ${logTailOf(logFile)}`)
      await sleep(restartMs)
      if (!keeper.closing) await startMember({ ...options, env: { ...env, ...envAgain?.(ready) } })
    })
    .catch(fail)
  return ready
}

function findLine(log: string, message: string): ReadyLine | undefined {
  // The last line may be incomplete.
  const lines = log.split('\n').slice(0, -1)
  const found = lines.filter((line) => line.includes(message)).map((line): ReadyLine => JSON.parse(line))
  return found.find(({ msg }) => msg === message)
}
