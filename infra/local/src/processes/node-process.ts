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
  let kept: 'all' | 'warnings' = 'all'
  const readers = [stdout, stderr].map((stream) => createInterface({ input: stream }))
  for (const reader of readers) {
    reader.on('line', (line) => {
      // Nearly all lines are of level info, one or two a request: not worth the time to parse them.
      if (kept === 'warnings' && (line.startsWith('{"level":"info"') || logs.length >= KEPT_LINES)) return
      lines.push(line)
      logs.push(parse(line))
    })
  }
  let exit: Exit | undefined
  let wasEnded = false
  const exited = new Promise<Exit>((resolve) => {
    // Not 'exit': its last lines may come after that.
    child.on('close', (code, signal) => {
      exit = { code, signal }
      resolve(exit)
    })
  })

  /** Resolves with the first line, past or to come, that fits. Rejects when it exits before. */
  async function waitForLog(fits: (line: LogLine) => boolean, timeoutMs = 60_000): Promise<LogLine> {
    let next = 0
    const read = () => {
      const line = logs.slice(next).find(fits)
      next = logs.length
      return line ?? (exit && 'ended')
    }
    const found = await until(read, { timeoutMs }).catch(() => undefined)
    if (typeof found === 'object') return found
    const state = exit ? `ended (${exit.signal ?? exit.code})` : `did not log what was awaited within ${timeoutMs} ms`
    throw new Error(`${entry} ${state}. It said:\n${lines.slice(-20).join('\n')}`)
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
      for (const reader of readers) reader.close()
      for (const stream of [stdout, stderr]) stream.resume()
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
