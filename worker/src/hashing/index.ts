/** Hashing by policy: which algorithm a stored hash belongs to, whether it is still good enough, and the decoy. */
import type { RefusalCode } from '@spillway/client/protocol/job'
import type { Verifier } from './algorithm.js'
import type { AlgorithmName } from './algorithm-name.js'
import { NATIVE_NAME, type NativeEngine, startNativeEngine } from './native.js'
import type { Policy } from './policy.js'
import { testDoubles } from './testdoubles.js'

export interface Hasher {
  /** The algorithm of new hashes and of decoys. */
  readonly algorithm: AlgorithmName
  /** The implementation in use for each family of algorithms. */
  readonly engines: Readonly<Record<string, string>>
  /** Which engine that is and how to have the other, in a sentence for whoever runs this. */
  readonly description: string
  /** The engine that hashes several at a time, where it is built and turned on. */
  readonly native: NativeEngine | undefined
  hash(password: string, signal?: AbortSignal): Promise<string>
  /**
   * Throws {@link UnsupportedHashError} for a stored hash that no algorithm recognizes. The signal takes a call back that has
   * not begun, here and in the others.
   */
  verify(password: string, storedHash: string, signal?: AbortSignal): Promise<boolean>
  /** The work of {@link Hasher.verify} at today's cost; the password matches nothing. */
  decoy(password: string, signal?: AbortSignal): Promise<void>
  isBelow(storedHash: string): boolean
}

/** A stored hash that cannot be verified: another algorithm, damaged, or asking for too much. */
export class UnsupportedHashError extends Error {
  override readonly name = 'UnsupportedHashError'
  readonly code: RefusalCode = 'unsupported_hash'
}

export interface HasherOptions {
  testHashes: boolean
  /** With so many threads of its own the native engine is used, where it is built. */
  nativeThreads?: number | undefined
}

/** Loads and tests the implementations; throws when an algorithm has none that works here. */
export async function createHasher(policy: Policy, options: HasherOptions): Promise<Hasher> {
  const { nativeThreads } = options
  const native = nativeThreads ? await startNativeEngine(nativeThreads).catch(() => undefined) : undefined
  const { current, others } = await policy.load(native)
  const verifiers = [current, ...others, ...(options.testHashes ? testDoubles : [])]
  const engines = Object.fromEntries([current, ...others].map(({ family, engine }) => [family, engine]))
  const decoyHash = current.decoyHash()

  function verifierOf(storedHash: string): Verifier {
    const verifier = verifiers.find((candidate) => candidate.recognizes(storedHash))
    if (verifier === undefined) throw new UnsupportedHashError('the stored hash is of no supported algorithm or cost')
    return verifier
  }

  return {
    algorithm: policy.algorithm,
    engines,
    description: describe(native, Object.values(engines)),
    native,
    hash: current.hash,
    verify: async (password, storedHash, signal) => verifierOf(storedHash).verify(password, storedHash, signal),
    decoy: async (password, signal) => {
      await current.verify(password, decoyHash, signal)
    },
    isBelow: (storedHash) => verifierOf(storedHash).isBelow(storedHash),
  }
}

function describe(native: NativeEngine | undefined, engines: string[]): string {
  if (native !== undefined) {
    const wrong = native.wrong.length > 0 ? `; wrong here and not used: ${native.wrong.join(', ')}` : ''
    return `hashing with ${NATIVE_NAME}, ${native.description}; HASH_ENGINE=packages turns it off${wrong}`
  }
  return `hashing with ${engines.join(' and ')}, one at a time; with cargo, pnpm start builds ${NATIVE_NAME}, which HASH_ENGINE=native uses`
}
