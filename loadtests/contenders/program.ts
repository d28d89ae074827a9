// Starts a program of a contender in a process of its own, pinned to processors where the system can, and waits until
// it says on its standard output where it can be reached.
import { type ChildProcess, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { type Keeper, openKeeper, stopOrder } from '@spillway/local/processes/keeper'

/** A program that prints nothing for this long after its start has failed. */
const READY_WITHIN_MS = 60_000
/** After SIGTERM: longer than a gateway or worker takes to drain. */
const END_WITHIN_MS = 10_000

export interface Program {
  /** Path of a compiled program. Compiled, because a TypeScript loader would add threads of its own to what is measured. */
  path: string
  /** For Node itself. */
  nodeArgs?: readonly string[] | undefined
  env: Record<string, string>
  cores: readonly number[] | undefined
  /** What asks it to end [SIGTERM]. */
  endSignal?: NodeJS.Signals
}

export interface StartedProgram {
  pid: number
  /** What it printed when it was ready: a JSON line with `url` or `opsUrl`. */
  ready: Record<string, unknown>
  /** From the start of the process until then, in milliseconds. */
  readyMs: number
  close(): Promise<void>
}

/** Where `pnpm build` puts a program of this package. */
export function compiled(path: string): string {
  return fileURLToPath(new URL(`../dist/${path}.js`, import.meta.url))
}

/** Whether processes can be pinned here: Linux with util-linux. */
export const canPin = process.platform === 'linux' && spawnSync('taskset', ['--version']).status === 0

/** Opened for the first program: whatever becomes of this process, none of them outlives it. */
let keeper: Keeper | undefined

/** @throws one sentence with the program's last words when it ends or stays silent instead of becoming ready */
export async function startProgram(program: Program): Promise<StartedProgram> {
  const { UV_THREADPOOL_SIZE: _, ...inherited } = process.env
  const [command = process.execPath, ...args] = pinned(
    [process.execPath, ...(program.nodeArgs ?? []), program.path],
    program.cores,
  )
  keeper ??= openKeeper()
  const startMs = performance.now()
  const child = keeper.spawn({ command, args, stopOrder: stopOrder.tool, env: { ...inherited, ...program.env } })
  child.stdin?.end()
  const close = () => end(child, program.endSignal ?? 'SIGTERM')
  try {
    const ready = await readyLine(child)
    if (child.pid === undefined) throw new Error(`${program.path} has no process id`)
    return { pid: child.pid, ready, readyMs: performance.now() - startMs, close }
  } catch (error) {
    await close()
    throw error
  }
}

/** A command line that runs only on these cores, where the system can do that. */
export function pinned(command: string[], cores: readonly number[] | undefined): string[] {
  return cores === undefined || !canPin ? command : ['taskset', '-c', cores.join(','), ...command]
}

function readyLine(child: ChildProcess): Promise<Record<string, unknown>> {
  return new Promise((resolve, reject) => {
    let lastLine = ''
    const fail = (what: string) => reject(new Error(`${what}${lastLine === '' ? '' : `: ${lastLine.slice(0, 300)}`}`))
    const timer = setTimeout(() => fail(`not ready within ${READY_WITHIN_MS / 1_000} s`), READY_WITHIN_MS)
    const hear = (line: string) => {
      if (line.trim() !== '') lastLine = line.trim()
      const said = parse(line)
      if (typeof said?.url === 'string' || typeof said?.opsUrl === 'string') {
        clearTimeout(timer)
        // From here on it is thrown away unread, but taken: a program whose pipe is full would block.
        for (const { stream, lines } of outputs) {
          lines.close()
          stream.resume()
        }
        resolve(said)
      }
    }
    const outputs = [child.stdout, child.stderr].flatMap((stream) =>
      stream ? [{ stream, lines: createInterface(stream) }] : [],
    )
    for (const { lines } of outputs) lines.on('line', hear)
    child.on('error', (error) => fail(error.message))
    // `close`, not `exit`: its last lines have been read by then.
    child.on('close', (code, signal) => {
      clearTimeout(timer)
      fail(`ended with ${signal ?? `code ${code}`} before it was ready`)
    })
  })
}

function parse(line: string): Record<string, unknown> | undefined {
  if (!line.startsWith('{')) return undefined
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return
  const timer = setTimeout(() => child.kill('SIGKILL'), END_WITHIN_MS)
  child.kill(signal)
  await once(child, 'exit')
  clearTimeout(timer)
  killGroup(child.pid)
}

/** What a program leaves behind when it ends, such as a script for each hash, would run on beside the next contender. */
function killGroup(leaderPid: number): void {
  try {
    process.kill(-leaderPid, 'SIGKILL')
  } catch {
    // It left nothing.
  }
}
