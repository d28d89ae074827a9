// Starts a program of a contender in a process of its own, pinned to processors where the system can, and waits until
// it says on its standard output where it can be reached.
import { fileURLToPath } from 'node:url'
import { type LogLine, startProcess } from '@spillway/local/testing'

/** A program that prints nothing for this long after its start has failed. */
const READY_WITHIN_MS = 60_000

export interface Program {
  /** Path of a compiled program. Compiled, because a TypeScript loader would add threads of its own to what is measured. */
  path: string
  env: Record<string, string>
  cores: readonly number[] | undefined
}

export interface StartedProgram {
  pid: number
  /** What it printed when it was ready: a JSON line with `url`. */
  ready: LogLine
  /** From the start of the process until then, in milliseconds. */
  readyMs: number
  /** Kills it with all that it started: it keeps nothing, and would hash on for callers that are long gone. */
  close(): Promise<void>
}

/** Where `pnpm build` puts a program of this package. */
export function compiled(path: string): string {
  return fileURLToPath(new URL(`../dist/${path}.js`, import.meta.url))
}

/** @throws the program's last words when it ends or stays silent instead of becoming ready */
export async function startProgram({ path, env, cores }: Program): Promise<StartedProgram> {
  const startMs = performance.now()
  const program = startProcess({ entry: path, env, cores })
  const { pid } = program
  const close = async () => {
    killGroup(pid)
    await program.exited
  }
  try {
    const ready = await program.waitForLog(({ url }) => typeof url === 'string', READY_WITHIN_MS)
    const readyMs = performance.now() - startMs
    program.keepOnly('nothing')
    return { pid, ready, readyMs, close }
  } catch (error) {
    await close()
    throw error
  }
}

function killGroup(leaderPid: number): void {
  try {
    process.kill(-leaderPid, 'SIGKILL')
  } catch {
    // It has ended, and left nothing.
  }
}
