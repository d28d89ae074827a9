import { EventEmitter, on } from 'node:events'
import { closeSync, openSync, writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { pinned } from './cores.ts'
import { Keeper, stopOrder } from './keeper.ts'
import { repositoryDir } from './repository.ts'
import { until } from './until.ts'

/** One line of its log as pino writes it; text that is not JSON comes as msg alone. */
export interface LogLine {
  msg?: string
  [field: string]: unknown
}

export interface Exit {
  code: number | null
  signal: NodeJS.Signals | null
}

export interface NodeOptions {
  args?: string[]
  nodeArgs?: readonly string[] | undefined
  /** Its whole environment, except for PATH and HOME. */
  env?: NodeJS.ProcessEnv
  cwd?: string
  /** Where the system can pin processes. */
  cores?: readonly number[] | undefined
  /** Ends it with this process at the latest [one for all such processes]. */
  keeper?: Keeper | undefined
  /** Its output is also appended to this file. */
  logFile?: string
}

export interface ProcessOptions extends NodeOptions {
  /** What Node runs, from the root of the checkout: `worker/dist/main.cjs`. */
  entry: string
  /** When the keeper ends it [as a tool]. */
  stopOrder?: number
}

const STOPPED_WITHIN_MS = 60_000
/** Of those that are warnings. */
const KEPT_LINES = 5_000
const ENDING: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT', 'SIGKILL']

let sharedKeeper: Keeper | undefined

export type NodeProcess = ReturnType<typeof startProcess>

export function startProcess(options: ProcessOptions) {
  const { entry, args = [], nodeArgs = [], env = {}, cwd = repositoryDir, cores, keeper = commonKeeper() } = options
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
  const logFd = options.logFile === undefined ? undefined : openSync(options.logFile, 'a')
  const outputs = [stdout, stderr].map((stream) => ({ stream, reader: createInterface({ input: stream }) }))
  for (const { stream, reader } of outputs) {
    if (logFd !== undefined) stream.on('data', (bytes) => writeSync(logFd, bytes))
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
      if (logFd !== undefined) closeSync(logFd)
      heard.emit('end')
      resolve(exit)
    })
  })

  /** Resolves with the first line, past or to come, that fits. Rejects when it exits before. */
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

  function signal(name: NodeJS.Signals): void {
    wasEnded ||= exit === undefined && ENDING.includes(name)
    child.kill(name)
  }

  return {
    pid,
    /** Its output so far, in order; standard error included. See keepOnly. */
    logs,
    output: () => lines.join('\n'),
    waitForLog,
    /** From here on keeps no lines of level info, and some thousand others; or nothing. */
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
    /** Rejects when it still runs after a minute. */
    async stop(name: NodeJS.Signals = 'SIGTERM'): Promise<Exit> {
      signal(name)
      return await until(() => exit, { timeoutMs: STOPPED_WITHIN_MS, what: `the end of ${entry} by ${name}` })
    },
    exited,
    get exit(): Exit | undefined {
      return exit
    },
    get wasEnded(): boolean {
      return wasEnded
    },
    /** Stops reading its standard output, as when the program behind its pipe has ended. */
    closeStdout: (): void => void stdout.destroy(),
    async close(): Promise<void> {
      signal('SIGKILL')
      await exited
    },
  }
}

function commonKeeper(): Keeper {
  sharedKeeper ??= new Keeper()
  return sharedKeeper
}

function parse(line: string): LogLine {
  try {
    const value: unknown = JSON.parse(line)
    if (typeof value === 'object' && value !== null) return { ...value }
  } catch {
    // A warning or a stack.
  }
  return { msg: line }
}
