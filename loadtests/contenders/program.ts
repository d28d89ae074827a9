// Starts a program of a contender in a process of its own, pinned to processors where the system can, and waits until
// it says on its standard output where it can be reached.
import { fileURLToPath } from 'node:url'
import { type ProcessToTest, startProcess } from '@spillway/local/rig'
import type { Part, Running, StartOptions } from './contender.ts'

/** A program that prints nothing for this long after its start has failed. */
const READY_WITHIN_MS = 60_000

/** The path of a compiled program of this package. Compiled, because a TypeScript loader would add threads of its own to what is measured. */
export function compiled(program: string): string {
  return fileURLToPath(new URL(`../dist/${program}.js`, import.meta.url))
}

/** Starts a program of this package. Rejects with its log tail when it ends or stays silent instead of becoming ready. */
export async function startProgram(program: string, options: Pick<ProcessToTest, 'cores' | 'env'>) {
  const startMs = performance.now()
  const started = startProcess({ entry: compiled(program), ...options })
  const { pid } = started
  /** Kills it with all that it started: it keeps nothing, and would hash on for callers that are long gone. */
  const close = async () => {
    killGroup(pid)
    await started.exited
  }
  try {
    const ready = await started.waitForLog(({ url }) => typeof url === 'string', READY_WITHIN_MS)
    const readyMs = performance.now() - startMs
    started.keepOnly('nothing')
    return {
      pid,
      /** The line that it printed when it was ready: JSON with `url`. */
      ready,
      /** From the start of the process until then, in milliseconds. */
      readyMs,
      close,
    }
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

/** Starts `contenders/rivals/<name>`, which serves the whole API and says which processes it consists of. */
export async function startRival(
  name: string,
  { cores, algorithm, services }: StartOptions,
  env: Record<string, string> = {},
): Promise<Running> {
  const settings = { DATABASE_URL: services.databaseUrl, ALGORITHM: algorithm, ...env }
  const { pid, ready, readyMs, close } = await startProgram(`contenders/rivals/${name}`, { cores, env: settings })
  const others: Part[] = Array.isArray(ready.parts) ? ready.parts : []
  return {
    url: String(ready.url),
    neighbourPath: '/neighbour',
    parts: [{ role: 'api', pid, readyMs }, ...others.map(({ role, pid }) => ({ role, pid }))],
    close,
  }
}
