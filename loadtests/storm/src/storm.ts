// A storm: probes while it is calm, while users log in, and until it is calm again.
import { setMaxListeners } from 'node:events'
import { beginningOf, type Connections, openConnections, pause, type StormAnswer } from './ask.ts'
import { UsageError } from './options.ts'
import { isWorking, type StormTimes, startProbe, untilCalmAgain } from './probes.ts'
import { forUser, type HttpRequest, nameOf } from './request.ts'
import { generatorOf, loginFigures, probeResult, type StormResult } from './result.ts'
import { openTarget } from './target.ts'
import { isLoggedIn, type Login, logInRepeatedly, type Users } from './users.ts'

export interface StormOptions {
  /** Such as `http://127.0.0.1:3000`. */
  target: string
  /** Lets it be another machine than this one. */
  beyondLoopback: boolean
  login: HttpRequest
  /** Statuses of a login that succeeded [any from 200 to 399]. */
  expect: readonly number[] | undefined
  probes: readonly HttpRequest[]
  users: number
  durationS: number
  /** How often each probe is asked in a second. */
  probesPerSecond: number
  /** What a probe may take at p99 during the storm. */
  p99Ms: number
  timeoutS: number
  calmS: number
  afterS: number
}

interface StormWatch {
  /** Ends the storm early; the result holds what was measured until then. */
  signal: AbortSignal
  /** Shows the progress on a terminal. */
  progress(line: string): void
}

/** Throws a UsageError before the storm: when the target cannot be reached or is not allowed, or a login or a probe does not work. */
export async function storm(options: StormOptions, { signal, progress }: StormWatch): Promise<StormResult> {
  const { target: url, beyondLoopback, login, expect, probes: requests, users, ...settings } = options
  const { durationS, calmS, afterS, timeoutS, probesPerSecond: perSecond } = settings
  // One listener for each open request.
  setMaxListeners(0, signal)
  const timeoutMs = timeoutS * 1_000
  const isExpected = (status: number) => expect?.includes(status) ?? isLoggedIn(status)
  const target = await openTarget(url, beyondLoopback)
  const opened: Connections[] = []
  const connect = (more: { keepsText?: boolean; connections?: number } = {}) => {
    const connections = openConnections(target, { timeoutMs, signal, ...more })
    opened.push(connections)
    return connections
  }
  try {
    progress('trying the login and the probes')
    const trial = connect({ keepsText: true })
    await tryLogins(trial, login, { users, isExpected })
    await tryProbes(trial, requests)

    const startedAt = new Date().toISOString()
    const probes = requests.map((request) =>
      startProbe(request, { perSecond, timeoutMs, connections: connect(), interrupted: signal }),
    )
    progress(`calm: probes alone, for ${calmS} s`)
    await pause(calmS * 1_000, signal)
    // One that is still open would wait for the logins, and count as slow before them.
    await Promise.all(probes.map((probe) => probe.stop()))
    const each = { count: users, login, isExpected, connect: () => connect({ connections: 1 }), interrupted: signal }
    const storming = letUsersLogIn(each, durationS * 1_000, progress)
    for (const probe of probes) probe.resume()
    const { logins, times, stormS, used } = await storming
    progress(`after: until the probes are as quick as before, for at most ${afterS} s`)
    const again = await untilCalmAgain(probes, times, afterS * 1_000, signal)
    await Promise.all(probes.map((probe) => probe.stop()))
    return {
      ...{ format: 1, startedAt, interrupted: signal.aborted, target: target.origin, login: nameOf(login) },
      settings: { users, ...settings },
      ...{ stormS, loginsS: (times.endMs - times.startMs) / 1_000 },
      logins: loginFigures(logins, { startMs: times.startMs, stormS, timeoutMs }),
      probes: probes.map((probe, index) => ({ ...probeResult(probe, times), calmAgainMs: again[index] })),
      generator: generatorOf(probes, times, used),
    }
  } finally {
    for (const connections of opened) connections.close()
  }
}

// The time in which users log in, and what this program itself used in it.

const PROGRESS_MS = 500

interface LoginsOfStorm {
  logins: Login[]
  times: StormTimes
  /** How long logins began. */
  stormS: number
  used: NodeJS.CpuUsage
}

/** Resolves when the last login has ended, some time after `durationMs` or an interruption. */
async function letUsersLogIn(
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

/** Before a storm: a login that works and probes that work, so that a mistake is told in a sentence instead of thousands of errors. */
interface LoginTrial {
  users: number
  isExpected(status: number): boolean
}

/** Logs in the first user and the last, who is missing where there are fewer accounts than users. Throws a UsageError. */
async function tryLogins(connections: Connections, login: HttpRequest, { users, isExpected }: LoginTrial) {
  for (const user of new Set([1, users])) {
    const request = forUser(login, user)
    const answer = await connections.ask(request)
    if (answer.status !== undefined && isExpected(answer.status)) continue
    throw new UsageError(`Nothing was stormed: user ${user} cannot log in. ${said(request, answer)}`)
  }
}

/** Asks each once. Throws a UsageError. */
async function tryProbes(connections: Connections, probes: readonly HttpRequest[]): Promise<void> {
  for (const probe of probes) {
    const answer = await connections.ask(probe)
    if (!isWorking(answer.status))
      throw new UsageError(`Nothing was stormed: a probe does not work. ${said(probe, answer)}`)
  }
}

function said(request: HttpRequest, { status, failure, text }: StormAnswer): string {
  if (status === undefined) return `${nameOf(request)} was not answered (${failure}).`
  const beginning = beginningOf(text, request)
  return `${nameOf(request)} was answered with ${status}${beginning === '' ? '.' : `: ${beginning}`}`
}
