// A real process of this project: its log lines, its exit, its end.
import { EventEmitter, on } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { Keeper, stopOrder } from '../processes/keeper.ts'
import { pinned } from '../processes/processor-time.ts'
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

export interface ProcessToTest {
  /** What Node runs, from the root of the checkout: `worker/dist/main.cjs`. */
  entry: string
  args?: string[]
  /** Options for Node itself. */
  nodeArgs?: readonly string[] | undefined
  /** Its whole environment, except for PATH and HOME. */
  env?: NodeJS.ProcessEnv
  /** Its working directory [the root of the checkout]. */
  cwd?: string
  /** Processors that it is pinned to, where the system can do that. */
  cores?: readonly number[] | undefined
  /** Ends it with this process at the latest [one for all such processes]. */
  keeper?: Keeper | undefined
  /** When the keeper ends it [as a tool]. */
  stopOrder?: number
}

const STOPPED_WITHIN_MS = 60_000
/** Of those that are warnings. */
const KEPT_LINES = 5_000
const ENDING: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT', 'SIGKILL']

let sharedKeeper: Keeper | undefined

export type TestProcess = ReturnType<typeof startProcess>

/** Starts a process of this project. It ends with this process at the latest. */
export function startProcess(options: ProcessToTest) {
  const { entry, args = [], nodeArgs = [], env = {}, cwd = repositoryDir, cores, keeper = keeperOfTests() } = options
  const [command = '', ...rest] = pinned([process.execPath, ...nodeArgs, entry, ...args], cores)
  const child = keeper.spawn({
    command,
    args: rest,
    stopOrder: options.stopOrder ?? stopOrder.tool,
    cwd,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
  })
  const { pid, stdout, stderr } = child
  if (pid === undefined || stdout === null || stderr === null) throw new Error(`${entry} could not be started`)
  const lines: string[] = []
  const logs: LogLine[] = []
  const heard = new EventEmitter().setMaxListeners(0)
  let kept: 'all' | 'warnings' = 'all'
  const outputs = [stdout, stderr].map((stream) => ({ stream, reader: createInterface({ input: stream }) }))
  for (const { reader } of outputs) {
    reader.on('line', (line) => {
      // Nearly all lines are of level info, one or two a request: not worth the time to parse them.
      if (kept === 'warnings' && (line.startsWith('{"level":"info"') || logs.length >= KEPT_LINES)) return
      const said = parse(line)
      lines.push(line)
      logs.push(said)
      heard.emit('line', said)
    })
  }
  let exit: Exit | undefined
  let wasEnded = false
  const exited = new Promise<Exit>((resolve) => {
    // Not 'exit': its last lines may come after that.
    child.on('close', (code, signal) => {
      exit = { code, signal }
      heard.emit('end')
      resolve(exit)
    })
  })

  /**
   * Resolves with the first line, past or to come, that fits. Rejects when it exits before that, or
   * after timeoutMs [60 s].
   */
  async function waitForLog(fits: (line: LogLine) => boolean, timeoutMs = 60_000): Promise<LogLine> {
    const found = logs.find(fits) ?? (exit === undefined ? await nextLine(fits, timeoutMs) : undefined)
    if (found !== undefined) return found
    const state = exit ? `ended (${exit.signal ?? exit.code})` : `did not log what was awaited within ${timeoutMs} ms`
    throw new Error(`${entry} ${state}. It said:\n${lines.slice(-20).join('\n')}`)
  }

  async function nextLine(fits: (line: LogLine) => boolean, timeoutMs: number): Promise<LogLine | undefined> {
    const signal = AbortSignal.timeout(timeoutMs)
    try {
      for await (const [line] of on(heard, 'line', { close: ['end'], signal })) if (fits(line)) return line
    } catch (error) {
      if (!signal.aborted) throw error
    }
    return undefined
  }

  /** Kills, stops or continues it. */
  function signal(name: NodeJS.Signals): void {
    wasEnded ||= exit === undefined && ENDING.includes(name)
    child.kill(name)
  }

  return {
    pid,
    /** Its output so far, in order; standard error included. See keepOnly. */
    logs,
    /** The same as one text, as it was printed. */
    output: () => lines.join('\n'),
    waitForLog,
    /** Keeps less of its output from here on: no lines of level info, and a few thousand others; or nothing, unread. */
    keepOnly(what: 'warnings' | 'nothing'): void {
      if (what === 'warnings') {
        kept = what
        return
      }
      // Taken all the same: a process whose pipe is full would block.
      for (const { stream, reader } of outputs) {
        reader.close()
        stream.resume()
      }
    },
    signal,
    /** Asks it to end [SIGTERM] and waits for it. Rejects when it still runs after a minute. */
    async stop(name: NodeJS.Signals = 'SIGTERM'): Promise<Exit> {
      signal(name)
      return await until(() => exit, { timeoutMs: STOPPED_WITHIN_MS, what: `the end of ${entry} by ${name}` })
    },
    exited,
    /** How it ended, once it has. */
    get exit(): Exit | undefined {
      return exit
    },
    /** Whether it was told to end. */
    get wasEnded(): boolean {
      return wasEnded
    },
    /** Stops reading its standard output for good, as when the program that it was piped into has ended. */
    closeStdout: (): void => void stdout.destroy(),
    /** Kills it if it still runs. */
    async close(): Promise<void> {
      signal('SIGKILL')
      await exited
    },
  }
}

function keeperOfTests(): Keeper {
  sharedKeeper ??= new Keeper()
  return sharedKeeper
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

// Clocks of tests: a process with a shifted wall clock, Redis's clock, and a stopwatch.

const preload = fileURLToPath(new URL('shifted-clock.mjs', import.meta.url))

/** The environment of a process whose wall clock is this far ahead, in milliseconds; negative for behind. */
export function clockOff(shiftMs: number): { CLOCK_SHIFT_MS: string; NODE_OPTIONS: string } {
  // Quoted, because Node splits NODE_OPTIONS at blanks.
  return { CLOCK_SHIFT_MS: String(shiftMs), NODE_OPTIONS: `--import "file://${encodeURI(preload)}"` }
}

interface TimeSource {
  time(): Promise<(number | string)[]>
}

/** The time by Redis's clock, which deadlines are in: epoch milliseconds. */
export async function redisTime(redis: TimeSource): Promise<number> {
  const [seconds, microseconds] = await redis.time()
  return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000)
}

const TICK_MS = 25

/**
 * Starts a stopwatch for upper bounds on busy machines, and returns how to read it, in
 * milliseconds. It counts turns of this process's timers instead of the time of day: while the
 * machine gives this process no processor it stands still, as what the test waits for is likely to.
 * Not for lower bounds.
 */
export function startStopwatch(): () => number {
  let ticks = 0
  const timer = setInterval(() => {
    ticks += 1
  }, TICK_MS)
  timer.unref()
  return () => ticks * TICK_MS
}
