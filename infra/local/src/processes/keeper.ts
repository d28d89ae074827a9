// Starts processes that never outlive this one: a keeper process stops them, in order, when this
// one ends. They run in sessions of their own, so that Ctrl-C reaches this process alone.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { Socket } from 'node:net'
import { basename } from 'node:path'
import type { Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { UserError } from './command-line.ts'

/** The order of stopping: lowest first, each group after the previous one has ended. */
export const stopOrder = { tool: 0, gateway: 1, worker: 2, service: 3 } as const

export interface Tool {
  command: string
  args: string[]
  /** The signal that asks it to end [SIGTERM]. */
  signal?: NodeJS.Signals
  cwd?: string
  env?: NodeJS.ProcessEnv
}

interface KeptProcess extends Tool {
  stopOrder: number
  /** A file descriptor that takes both outputs; without it both are piped. */
  logFd?: number
}

export class ToolFailure extends UserError {
  override name = 'ToolFailure'
  readonly output: string

  constructor({ command, args }: Tool, output: string) {
    super(`${[basename(command), ...args].join(' ').slice(0, 100)} failed: ${logTail(output)}`)
    this.output = output
  }
}

export class Keeper {
  readonly #process: ChildProcess
  readonly #stdin: Writable
  readonly #exited: Promise<unknown>
  readonly #closing: (() => void)[] = []

  constructor() {
    const script = fileURLToPath(new URL('keeper-process.js', import.meta.url))
    const keeper = spawn(process.execPath, [script], {
      detached: true,
      cwd: '/',
      stdio: ['pipe', 'ignore', 'ignore'],
    })
    if (keeper.pid === undefined)
      throw new UserError('No further process could be started: free some memory or processes.')
    this.#process = keeper
    this.#stdin = keeper.stdin
    this.#exited = once(keeper, 'exit')
    keeper.unref()
    if (keeper.stdin instanceof Socket) keeper.stdin.unref()
    // The pipe breaks only when the keeper has been killed; close() then resolves at once.
    this.#stdin.on('error', () => {})
  }

  get pid(): number | undefined {
    return this.#process.pid
  }

  get closing(): boolean {
    return this.#stdin.writableEnded
  }

  onClosing(act: () => void): void {
    this.#closing.push(act)
  }

  spawn({ command, args, stopOrder, signal = 'SIGTERM', logFd, ...options }: KeptProcess): ChildProcess {
    if (this.closing) throw new UserError('Closing: nothing more is started.')
    const output = logFd ?? 'pipe'
    const child = spawn(command, args, { ...options, detached: true, stdio: ['pipe', output, output] })
    child.on('error', () => {})
    if (child.pid !== undefined) {
      this.#stdin.write(`watch ${child.pid} ${signal} ${stopOrder}\n`)
      child.on('exit', () => this.#stdin.writable && this.#stdin.write(`forget ${child.pid}\n`))
    }
    return child
  }

  /** Runs a process to its end and returns its output. Rejects with a ToolFailure if it fails. */
  async run(what: Tool): Promise<string> {
    const child = this.spawn({ ...what, stopOrder: stopOrder.tool })
    child.stdin?.end()
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (text) => (output += text))
    const code = await new Promise((resolve) => child.on('close', resolve).on('error', resolve))
    if (code === 0) return output
    throw new ToolFailure(what, code instanceof Error ? code.message : output)
  }

  /** Stops all running processes by stopOrder, and resolves when no process is left. */
  async close(): Promise<void> {
    for (const act of this.#closing.splice(0)) act()
    this.#process.ref()
    this.#stdin.end()
    await this.#exited
  }
}

export function logTail(output: string): string {
  return output.trim().split('\n').slice(-3).join(' / ').slice(-400) || '(no output)'
}

/** The last lines of a log file of any size. */
export function logTailOf(logFile: string): string {
  const fd = openSync(logFile, 'r')
  const { size } = fstatSync(fd)
  const end = Buffer.alloc(Math.min(size, 4_096))
  readSync(fd, end, 0, end.length, size - end.length)
  closeSync(fd)
  return logTail(end.toString())
}
