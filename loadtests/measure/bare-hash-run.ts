// Runs the bare hash, of a package or of the native engine, where a contender would run: in a process of its own, on the contender's cores.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { pinned } from '@spillway/local/processes/pinning'
import type { Algorithm } from '../contenders/hashing.ts'
import { compiled } from '../contenders/program.ts'

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

/** What the native engine takes for a verify, measured in turn with the fastest package. */
export interface NativeHash {
  processorMs: number
  latencyMs: number
  /** As a share of the package's: of its latency for one alone, of its processor time in full batches. */
  ofPackage: number
}

export async function nativeHash(
  algorithm: Algorithm,
  load: 'alone' | 'batches',
  forMs: number,
  cores: readonly number[] | undefined,
): Promise<NativeHash> {
  const [command = process.execPath, ...args] = pinned([process.execPath, compiled('measure/native-hash')], cores)
  const { stdout } = await promisify(execFile)(command, [...args, algorithm, load, String(forMs)])
  return JSON.parse(stdout)
}
