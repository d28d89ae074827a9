// The bare hash, of a package or of the native engine, where a contender would run: in a process of its own, on the contender's cores.
import { pinned } from '@spillway/infra/processes/processor-time'
import { run } from '@spillway/infra/processes/run'
import { compiled } from '../contenders/contender.ts'

type Cores = readonly number[] | undefined

export const verified = ['bcrypt', 'argon2id', 'pbkdf2', 'scrypt'] as const
type Verified = (typeof verified)[number]

const fastestPackage: Record<Verified, string> = {
  ...{ bcrypt: '@node-rs/bcrypt', argon2id: '@node-rs/argon2' },
  ...{ pbkdf2: 'crypto.pbkdf2', scrypt: 'crypto.scrypt' },
}

/** The time of one verify, measured one after the other. */
interface BareHash {
  medianMs: number
  meanMs: number
  /** The median processor time, in all threads. */
  processorMs: number
}

/** @param engine by the name of its package */
export async function bareHash(engine: string, forMs: number, cores: Cores): Promise<BareHash> {
  const [took] = await verifyInTurn([engine], forMs, cores)
  if (took === undefined) throw new Error(`${engine} was not measured`)
  return took
}

/** The native engine in turn with the fastest package, and as a share of that one. */
export async function nativeHash(algorithm: Verified, load: 'alone' | 'batches', forMs: number, cores: Cores) {
  const rival = fastestPackage[algorithm]
  const [ours, theirs] = await verifyInTurn([`native:${rival}:${load}`, rival], forMs, cores)
  if (ours === undefined || theirs === undefined) throw new Error('the native engine was not measured')
  // A verify alone is waited for: latency counts. Many together share the processors: processor time counts.
  const figure = load === 'alone' ? 'medianMs' : 'processorMs'
  return { ...ours, ofPackage: ours[figure] / theirs[figure] }
}

async function verifyInTurn(names: readonly string[], forMs: number, cores: Cores): Promise<BareHash[]> {
  const program = [process.execPath, compiled('measure/bare-hash-program'), String(forMs), ...names]
  const [command = '', ...args] = pinned(program, cores)
  return JSON.parse(await run(command, args))
}
