// The time in which users log in, and what this program itself used in it.
import { setMaxListeners } from 'node:events'
import type { StormTimes } from './calm-again.ts'
import { pause } from './pause.ts'
import { type Login, logInRepeatedly, type Users } from './users.ts'

const PROGRESS_MS = 500

export interface LoginsOfStorm {
  logins: Login[]
  times: StormTimes
  /** How long logins began. */
  stormS: number
  used: NodeJS.CpuUsage
}

/** Resolves when the last login has ended, some time after `durationMs` or an interruption. */
export async function letUsersLogIn(
  users: Omit<Users, 'over' | 'onLogin'>,
  durationMs: number,
  progress: (line: string) => void,
): Promise<LoginsOfStorm> {
  const logins: Login[] = []
  const over = new AbortController()
  // One listener for each user that waits.
  setMaxListeners(0, over.signal)
  const processorTime = process.cpuUsage()
  const startMs = performance.now()
  const overMs = pause(durationMs, users.interrupted).then(() => {
    over.abort()
    return performance.now()
  })
  const reporting = setInterval(() => progress(`storm: ${logins.length} logins have ended`), PROGRESS_MS)
  await logInRepeatedly({ ...users, over: over.signal, onLogin: (login) => logins.push(login) })
  clearInterval(reporting)
  const stormS = ((await overMs) - startMs) / 1_000
  return { logins, times: { startMs, endMs: performance.now() }, stormS, used: process.cpuUsage(processorTime) }
}
