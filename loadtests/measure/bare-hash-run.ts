// Runs the bare hash where a contender would run: in a process of its own, on the contender's cores.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { compiled, pinned } from '../contenders/program.ts'

export interface BareHash {
  /** The median of verifies one after the other. */
  medianMs: number
  meanMs: number
  /** The mean processor time of one, in all threads. */
  processorMs: number
}

/** @param engine by the name of its package */
export async function bareHash(engine: string, forMs: number, cores: readonly number[] | undefined): Promise<BareHash> {
  const [command = process.execPath, ...args] = pinned([process.execPath, compiled('measure/bare-hash')], cores)
  const { stdout } = await promisify(execFile)(command, [...args, engine, String(forMs)])
  return JSON.parse(stdout)
}
