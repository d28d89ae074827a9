// The bare hash, of a package or the native engine, in a process on the contender's cores.
import { pinned } from '@spillway/infra/processes/processor-time'
import { run } from '@spillway/infra/processes/run'
import { compiled } from '../contenders/contender.ts'

type Cores = readonly number[] | undefined

/** The median times of one verify, measured one after the other. */
interface BareHash {
  medianMs: number
  /** Processor time, in all threads. */
  processorMs: number
}

/** @param engine its package, or the native engine with its load: see the program */
export async function bareHash(engine: string, forMs: number, cores: Cores): Promise<BareHash> {
  const [took] = await inTurn([engine], forMs, cores)
  if (took === undefined) throw new Error(`${engine} was not measured`)
  return took
}

/** The native engine in turn with a package, and as a share of it. */
export async function nativeHash(rival: string, load: 'alone' | 'batches', forMs: number, cores: Cores) {
  const [ours, theirs] = await inTurn([`native:${rival}:${load}`, rival], forMs, cores)
  if (ours === undefined || theirs === undefined) throw new Error('the native engine was not measured')
  // Alone, latency counts. In batches, which share the processors, processor time counts.
  const figure = load === 'alone' ? 'medianMs' : 'processorMs'
  return { ...ours, ofPackage: ours[figure] / theirs[figure] }
}

async function inTurn(names: readonly string[], forMs: number, cores: Cores): Promise<BareHash[]> {
  const program = [process.execPath, compiled('measure/bare-hash-program'), String(forMs), ...names]
  const [command = '', ...args] = pinned(program, cores)
  return JSON.parse(await run(command, args))
}
