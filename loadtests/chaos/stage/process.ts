// A gateway or worker as a process of its own that scenarios may kill: what it said when it was ready, what it complained
// about, and how it ended.
import { createInterface } from 'node:readline'
import { type Keeper, stopOrder, until } from '../local.ts'

/** How it ended: an exit code or the signal that killed it. */
export interface Exit {
  code: number | null
  signal: NodeJS.Signals | null
}

export type LogLine = Record<string, unknown>

export interface Part {
  name: string
  pid: number
  /** What it logged when it was ready, with `url` and `opsUrl`. */
  ready: LogLine
  /** Its log lines of level warn and above, the first few thousand. */
  warnings: LogLine[]
  /** What it printed that is no log line: a stack, a warning of Node's. Nothing, unless it is broken. */
  strayLines: string[]
  /** Set once it has ended. */
  readonly exit: Exit | undefined
  /** Whether it was told to end. */
  readonly wasEnded: boolean
  /** Kills, stops or continues it. */
  signal(name: NodeJS.Signals): void
  /** Asks it to end and waits until it has. */
  stop(): Promise<Exit>
}

export interface PartOptions {
  keeper: Keeper
  name: string
  /** The compiled file that Node runs. */
  entry: string
  env: NodeJS.ProcessEnv
  readyMessage: string
}

const READY_WITHIN_MS = 30_000
/** Longer than a gateway holds a request and a worker finishes its jobs. */
const STOPPED_WITHIN_MS = 30_000
const KEPT_LINES = 5_000
const ENDING: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT', 'SIGKILL']

/** Starts it and waits until it is ready. @throws its last words when it ends or stays silent instead */
export async function startPart({ keeper, name, entry, env, readyMessage }: PartOptions): Promise<Part> {
  const child = keeper.spawn({
    command: process.execPath,
    args: [entry],
    stopOrder: stopOrder.worker,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
  })
  const { pid, stdout, stderr } = child
  if (pid === undefined || stdout === null || stderr === null) throw new Error(`${name} could not be started`)
  const warnings: LogLine[] = []
  const strayLines: string[] = []
  let ready: LogLine | undefined
  let exit: Exit | undefined
  let wasEnded = false

  function hear(line: string): void {
    // Nearly all lines are of level info, one or two a request: not worth the time to parse them.
    if (line.startsWith('{"level":"info"') && ready !== undefined) return
    const said = parse(line)
    if (said === undefined) strayLines.push(line)
    else if (said.msg === readyMessage) ready = said
    else if (said.level !== 'info' && warnings.length < KEPT_LINES) warnings.push(said)
  }
  for (const stream of [stdout, stderr]) createInterface({ input: stream }).on('line', hear)
  // Not 'exit': its last words may come after that.
  child.once('close', (code, signal) => {
    exit = { code, signal }
  })

  function signal(name: NodeJS.Signals): void {
    wasEnded ||= ENDING.includes(name)
    child.kill(name)
  }

  await until(() => ready ?? exit, { timeoutMs: READY_WITHIN_MS, what: `"${readyMessage}" of ${name}` })
  if (ready === undefined) throw new Error(`${name} ended before it was ready: ${strayLines.slice(-5).join(' / ')}`)
  return {
    name,
    pid,
    ready,
    warnings,
    strayLines,
    get exit() {
      return exit
    },
    get wasEnded() {
      return wasEnded
    },
    signal,
    async stop() {
      if (exit === undefined) signal('SIGTERM')
      return await until(() => exit, { timeoutMs: STOPPED_WITHIN_MS, what: `the end of ${name}` }).catch(() => {
        signal('SIGKILL')
        return until(() => exit)
      })
    },
  }
}

function parse(line: string): LogLine | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? { ...value } : undefined
  } catch {
    return undefined
  }
}
