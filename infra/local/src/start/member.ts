// Runs a gateway or worker as a process, from compiled code. A member that ends after it was ready is restarted, as in a cluster; one
// that does not become ready ends the run.
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Keeper, logTailOf, stopOrder } from '../processes/keeper.ts'
import { repositoryDir } from '../processes/repository.ts'
import { startService } from '../services/service.ts'
import { type Place, placeIn, toVariables } from './places.ts'

export interface MemberOptions {
  keeper: Keeper
  place: Place
  program: Program
  /** All but its ports. */
  env: NodeJS.ProcessEnv
  logDir: string
  /** Prints a notice when it ends unexpectedly. */
  say: (sentence: string) => void
  /** Called when it could not be restarted. */
  fail: (error: unknown) => void
}

/** The pause before a restart, so that a member that ends at once does not keep a processor busy. */
const restartMs = 1_000

/** Starts a member and resolves with its place. Rejects with a UserError that contains its log tail if it does not become ready. */
export async function startMember(options: MemberOptions): Promise<Place> {
  const { keeper, program, env, logDir, say, fail } = options
  const { name } = options.place
  const logFile = join(logDir, `${name.replace(' ', '-')}.log`)
  const before = existsSync(logFile) ? statSync(logFile).size : 0
  let { place } = options
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
      env: { ...env, ...toVariables(place) },
      cwd: repositoryDir,
    },
    async ping() {
      const line = findLine(readFileSync(logFile).subarray(before).toString(), program.readyMessage)
      if (line) place = placeIn(line, name)
      return line !== undefined
    },
  })
  exited
    .then(async (how) => {
      if (keeper.closing) return
      say(`${name} ended (${how}) and is started again. Its log ends with: ${logTailOf(logFile)}`)
      await sleep(restartMs)
      // It listens where it did before.
      if (!keeper.closing) await startMember({ ...options, place })
    })
    .catch(fail)
  return place
}

/** The log line by which a gateway or worker reports that it is ready. */
function findLine(log: string, message: string): Record<string, unknown> | undefined {
  // The last line may be incomplete.
  const lines = log.split('\n').slice(0, -1)
  const found = lines.filter((line) => line.includes(message)).map((line) => JSON.parse(line))
  return found.find(({ msg }) => msg === message)
}

/** The entry is the module that Node runs, from the root of the checkout; the log line of this message has the addresses: url and opsUrl. */
export const gatewayProgram = {
  entry: 'api/dist/main.js',
  readyMessage: 'gateway listening',
  stopOrder: stopOrder.gateway,
} as const

export const workerProgram = {
  entry: 'worker/dist/main.cjs',
  readyMessage: 'worker ready',
  stopOrder: stopOrder.worker,
} as const

export type Program = typeof gatewayProgram | typeof workerProgram

/** Reads a gateway's readiness, and how many workers it knows of. Rejects when it does not answer. */
export async function readinessOf(gatewayUrl: string) {
  const response = await fetch(`${gatewayUrl}/readyz`)
  const text = await response.text()
  const { workers }: { workers: number } = JSON.parse(text)
  return { ready: response.ok, workers, text }
}
