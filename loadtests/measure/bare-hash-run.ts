// Runs the bare hash, of a package or of the native engine, where a contender would run: in a process of its own, on the contender's cores.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { pinned } from '@spillway/local/processes/pinning'
import type { Algorithm } from '../contenders/hashing.ts'
import { compiled } from '../contenders/program.ts'

type Cores = readonly number[] | undefined

export interface BareHash {
  /** The median of verifies one after the other. */
  medianMs: number
  meanMs: number
  /** The mean processor time of one, in all threads. */
  processorMs: number
}

/** @param engine by the name of its package */
export function bareHash(engine: string, forMs: number, cores: Cores): Promise<BareHash> {
  return run('measure/bare-hash', [engine, String(forMs)], cores)
}

/** What the native engine takes for a verify, measured in turn with the fastest package. */
export interface NativeHash {
  processorMs: number
  latencyMs: number
  /** As a share of the package's: of its latency for one alone, of its processor time in full batches. */
  ofPackage: number
}

export function nativeHash(
  algorithm: Algorithm,
  load: 'alone' | 'batches',
  forMs: number,
  cores: Cores,
): Promise<NativeHash> {
  return run('measure/native-hash', [algorithm, load, String(forMs)], cores)
}

async function run(program: string, args: readonly string[], cores: Cores) {
  const [command = '', ...rest] = pinned([process.execPath, compiled(program), ...args], cores)
  const { stdout } = await promisify(execFile)(command, rest)
  return JSON.parse(stdout)
}
