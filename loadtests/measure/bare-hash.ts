// The bare hash, of a package or the native engine, in a process on the contender's cores.
import { pinned } from '@spillway/infra/processes/processor-time'
import { run } from '@spillway/infra/processes/run'
import { allCores, compiled } from '../contenders/contender.ts'

type Cores = readonly number[] | undefined

/** The median times of one verify. */
interface BareHash {
  /** With several at a time, its share of what they took together. */
  medianMs: number
  /** Processor time, in all threads. */
  processorMs: number
}

/** With nothing else, one at a time or in full batches; or in full batches on every processor. */
export type Load = 'alone' | 'full batches' | 'every processor'

/** @param engine its package, or the native engine with its load: see the program */
export async function bareHash(engine: string, forMs: number, cores: Cores, load: Load = 'alone'): Promise<BareHash> {
  const [took] = await inTurn([engine], forMs, cores, load)
  if (took === undefined) throw new Error(`${engine} was not measured`)
  return took
}

/**
 * The native engine in turn with a package, and as a share of it: of the latency alone, of the
 * processor time in full batches, and of the machine's time with every processor busy.
 */
export async function nativeHash(rival: string, load: Load, forMs: number, cores: Cores) {
  const ours = `native:${rival}:${load === 'alone' ? 'alone' : 'batches'}`
  const [native, theirs] = await inTurn([ours, rival], forMs, cores, load)
  if (native === undefined || theirs === undefined) throw new Error('the native engine was not measured')
  const figure = load === 'full batches' ? 'processorMs' : 'medianMs'
  return { ...native, ofPackage: native[figure] / theirs[figure] }
}

async function inTurn(names: readonly string[], forMs: number, cores: Cores, load: Load): Promise<BareHash[]> {
  const isEverywhere = load === 'every processor'
  const threads = String(isEverywhere ? allCores.length : 1)
  const program = [process.execPath, compiled('measure/bare-hash-program'), String(forMs), threads, ...names]
  const [command = '', ...args] = pinned(program, isEverywhere ? cores && allCores : cores)
  // Packages hash on libuv's threads.
  return JSON.parse(await run(command, args, { env: { ...process.env, UV_THREADPOOL_SIZE: threads } }))
}
