// A real process of this project under test: its log lines, its exit, its end.
import { createInterface } from 'node:readline'
import { type Keeper, openKeeper, stopOrder } from '../processes/keeper.ts'
import { repositoryDir } from '../processes/repository.ts'
import { until } from '../processes/until.ts'

/** One line of its log as pino writes it; text that is not JSON comes as msg alone. */
export interface LogLine {
  msg?: string
  [field: string]: unknown
}

export interface Exit {
  code: number | null
  signal: NodeJS.Signals | null
}

export interface TestProcess {
  pid: number
  /** What it printed so far, in order; standard error included. */
  logs: LogLine[]
  /** The same as one text, as it was printed. */
  output(): string
  /** Resolves with the first line, past or to come, that fits. Rejects when it exits before that, or after timeoutMs [30 s]. */
  waitForLog(fits: (line: LogLine) => boolean, timeoutMs?: number): Promise<LogLine>
  /** Asks it to end [SIGTERM] and waits for it, for at most 30 seconds. */
  stop(signal?: NodeJS.Signals): Promise<Exit>
  exited: Promise<Exit>
  /** Stops reading its standard output for good, as when the program that it was piped into has ended. */
  closeStdout(): void
  /** Kills it if it still runs. */
  close(): Promise<void>
}

export interface ProcessToTest {
  /** What Node runs, from the root of the checkout: `worker/dist/main.cjs`. */
  entry: string
  args?: string[]
  /** Options for Node itself. */
  nodeArgs?: string[]
  /** Its whole environment, but for PATH and HOME. */
  env?: NodeJS.ProcessEnv
  /** Where it runs [the root of the checkout]. */
  cwd?: string
}

let keeper: Keeper | undefined

/** Starts a process of this project. It ends with the test's process at the latest. */
export function startProcess({
  entry,
  args = [],
  nodeArgs = [],
  env = {},
  cwd = repositoryDir,
}: ProcessToTest): TestProcess {
  keeper ??= openKeeper()
  const child = keeper.spawn({
    command: process.execPath,
    args: [...nodeArgs, entry, ...args],
    stopOrder: stopOrder.tool,
    cwd,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
  })
  const { pid, stdout, stderr } = child
  if (pid === undefined || stdout === null || stderr === null) throw new Error(`${entry} could not be started`)
  const lines: string[] = []
  const logs: LogLine[] = []
  for (const stream of [stdout, stderr]) {
    createInterface({ input: stream }).on('line', (line) => {
      lines.push(line)
      logs.push(parse(line))
    })
  }
  let exit: Exit | undefined
  const exited = new Promise<Exit>((resolve) => {
    // Not 'exit': its last lines may come after that.
    child.on('close', (code, signal) => {
      exit = { code, signal }
      resolve(exit)
    })
  })
  const output = (): string => lines.join('\n')
  const waitForLog = async (fits: (line: LogLine) => boolean, timeoutMs = 30_000): Promise<LogLine> => {
    const found = await until(() => logs.find(fits) ?? exit !== undefined, {
      timeoutMs,
      what: `a log line of ${entry}`,
    }).catch(() => undefined)
    if (typeof found === 'object') return found
    const state = exit ? `ended (${exit.signal ?? exit.code})` : `did not log what was awaited within ${timeoutMs} ms`
    throw new Error(`${entry} ${state}. It said:\n${lines.slice(-20).join('\n')}`)
  }
  const stop = async (signal: NodeJS.Signals = 'SIGTERM'): Promise<Exit> => {
    child.kill(signal)
    return await until(() => exit, { timeoutMs: 30_000, what: `the end of ${entry} by ${signal}` })
  }
  const close = async (): Promise<void> => {
    child.kill('SIGKILL')
    await exited
  }
  return { pid, logs, output, waitForLog, stop, exited, closeStdout: () => stdout.destroy(), close }
}

function parse(line: string): LogLine {
  try {
    const value: unknown = JSON.parse(line)
    if (typeof value === 'object' && value !== null) return { ...value }
  } catch {
    // Not a log line of ours: a warning or a stack.
  }
  return { msg: line }
}
