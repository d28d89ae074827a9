// Runs the bare hash where a contender would run: in a process of its own, on the contender's cores.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Algorithm } from '../contenders/hashing.ts'
import { compiled, pinned } from '../contenders/program.ts'

/** The median of so many verifies, one after the other, in milliseconds. */
export async function bareHash(
  algorithm: Algorithm,
  times: number,
  cores: readonly number[] | undefined,
): Promise<number> {
  const [command = process.execPath, ...args] = pinned([process.execPath, compiled('measure/bare-hash')], cores)
  const { stdout } = await promisify(execFile)(command, [...args, algorithm, String(times)])
  return Number(stdout)
}
