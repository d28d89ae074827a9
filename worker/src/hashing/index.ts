/** Hashing by policy: selects the algorithm of a stored hash, tells whether it is below the policy, and provides the decoy. */
import type { RefusalCode } from '@spillway/client/protocol/job'
import { bcryptReadsWhole, type HashPolicy } from '@spillway/client/protocol/policy'
import { type ExactHash, parseSetting } from '@spillway/client/protocol/setting'
import { isDue, type RehashMode } from '@spillway/client/protocol/stored-hash'
import type { Verifier } from './algorithm.js'
import type { AlgorithmName } from './algorithm-name.js'
import type { FirebaseProject } from './formats/firebase-project.js'
import { foreignFormats } from './formats/list.js'
import { MEMORY_LIMIT_KIB } from './memory-limit.js'
import { NATIVE_NAME, type NativeEngine, startNativeEngine } from './native.js'
import { loadAlgorithms, type Policy } from './policy.js'
import { testDoubles } from './testdoubles.js'
import { createThreads } from './threads.js'

export interface Hasher {
  /** The algorithm of new hashes and of decoys, for requests without a policy. */
  readonly algorithm: AlgorithmName
  /** The implementation in use for each family of algorithms. */
  readonly engines: Readonly<Record<string, string>>
  /** One sentence for operators: the engine in use, and how to select the other. */
  readonly description: string
  /** The native engine, which hashes several passwords at a time; undefined when it is not built or turned off. */
  readonly native: NativeEngine | undefined
  /** A new hash by a policy [the worker's]. Throws {@link UnsupportedPasswordError}. */
  hash(password: string, policy?: HashPolicy, signal?: AbortSignal): Promise<string>
  /** A hash of which all is given. Throws {@link UnsupportedHashError} for a setting that costs too much or that nothing here takes. */
  hashExactly(exact: ExactHash, signal?: AbortSignal): Promise<string>
  /** Throws {@link UnsupportedHashError} for a stored hash that no algorithm recognizes. Signals cancel calls that have not begun. */
  verify(password: string, storedHash: string, signal?: AbortSignal): Promise<boolean>
  /** The work of {@link Hasher.verify} at the cost of the policy, with a hash that no password matches. */
  decoy(password: string, policy?: HashPolicy, signal?: AbortSignal): Promise<void>
  /** Whether the policy reads all of a password. */
  readsWhole(password: string, policy?: HashPolicy): boolean
  /**
   * Whether a stored hash must be replaced after a match [policy and mode of the worker; with a policy: `weaker`]. Throws
   * {@link UnsupportedHashError}.
   */
  isDue(storedHash: string, policy?: HashPolicy, mode?: RehashMode): boolean
  /** The label of a stored hash for metrics: `other` for one that no algorithm recognizes. */
  algorithmOf(storedHash: string): AlgorithmName
  /** How many passwords a slot hashes at a time, as it is best for the last ones. */
  batchWidth(): number
  /** The time of the hashing threads so far, in milliseconds, counted as in full batches. */
  threadMs(): number
}

/** A stored hash that cannot be verified: another algorithm, damaged, or asking for too much. */
export class UnsupportedHashError extends Error {
  override readonly name = 'UnsupportedHashError'
  readonly code: RefusalCode = 'unsupported_hash'
}

/** A new password of which the algorithm of the policy would read a part. */
export class UnsupportedPasswordError extends Error {
  override readonly name = 'UnsupportedPasswordError'
  readonly code: RefusalCode = 'unsupported_password'
}

/** The policy asks for more than a slot has on this machine. */
export class UnaffordablePolicyError extends Error {
  override readonly name = 'UnaffordablePolicyError'
}

export interface HasherOptions {
  /** Whether test doubles are accepted; false unless given. */
  testHashes?: boolean
  /** Hashing threads; 1 unless given. */
  slots?: number
  /** Whether the native engine is used, if it has been built; false unless given. */
  native?: boolean
  /** The memory that one hash may take, in KiB: see memory-limit.ts [1 GiB]. */
  memoryLimitKib?: number | undefined
  /** The project whose accounts were imported from Firebase, if there is one. */
  firebase?: FirebaseProject | undefined
}

/**
 * Loads and tests the implementations.
 * @throws UnaffordablePolicyError, and an Error where an algorithm has none that works here
 */
export async function createHasher(policy: Policy, options: HasherOptions): Promise<Hasher> {
  const { slots = 1, memoryLimitKib = MEMORY_LIMIT_KIB, firebase } = options
  const native = options.native ? await startNativeEngine(slots).catch(() => undefined) : undefined
  const threads = createThreads(slots)
  const algorithms = await loadAlgorithms(threads, { native, memoryLimitKib })
  const { argon2, bcrypt } = algorithms
  const known = [argon2, bcrypt]
  const doubles = options.testHashes ? testDoubles(threads) : []
  const formats = [
    ...known,
    ...(await foreignFormats({ threads, native, algorithms, firebase, memoryLimitBytes: 1_024 * memoryLimitKib })),
  ]
  native?.forgetCalls()
  const verifiers = [...formats, ...doubles]
  const engines = Object.fromEntries(formats.map(({ family, engine }) => [family, engine]))

  const findVerifier = (storedHash: string) => verifiers.find((candidate) => candidate.recognizes(storedHash))

  function verifierOf(storedHash: string): Verifier {
    const verifier = findVerifier(storedHash)
    if (verifier === undefined) throw new UnsupportedHashError('the stored hash is of no supported algorithm or cost')
    return verifier
  }

  const isAffordable = (by: HashPolicy): boolean =>
    by.algorithm === 'bcrypt' ? bcrypt.isAffordable(by) : argon2.isAffordable(by)
  if (policy.hashes.algorithm === 'argon2id' && !argon2.isAffordable(policy.hashes))
    throw new UnaffordablePolicyError(
      `a hash of the policy takes more memory than a slot has here: ${memoryLimitKib} KiB`,
    )

  return {
    algorithm: policy.algorithm,
    engines,
    description: describe(native, known),
    native,
    async hash(password, by = policy.hashes, signal) {
      if (!readsWhole(password, by)) throw new UnsupportedPasswordError('bcrypt does not read this password whole')
      if (!isAffordable(by)) throw new UnsupportedHashError('a hash of this policy takes more than a worker has')
      if (by.algorithm === 'bcrypt') return await bcrypt.hash(password, by, signal)
      return await argon2.hash(password, by, signal)
    },
    async hashExactly(exact, signal) {
      const setting = parseSetting(exact.setting)
      const isBcrypt = setting?.algorithm === 'bcrypt'
      const hash = isBcrypt
        ? bcrypt.hashExactly(exact, setting, signal)
        : setting && argon2.hashExactly(exact, setting, signal)
      if (hash === undefined) throw new UnsupportedHashError('no implementation here makes a hash by that setting')
      return await hash
    },
    verify: async (password, storedHash, signal) => verifierOf(storedHash).verify(password, storedHash, signal),
    async decoy(password, wanted = policy.hashes, signal) {
      const by = isAffordable(wanted) ? wanted : policy.hashes
      const verifier = by.algorithm === 'bcrypt' ? bcrypt : argon2
      const decoyHash = by.algorithm === 'bcrypt' ? bcrypt.decoyHash(by) : argon2.decoyHash(by)
      await verifier.verify(password, decoyHash, signal)
    },
    readsWhole: (password, by = policy.hashes) => readsWhole(password, by),
    isDue(storedHash, by, mode = by === undefined ? policy.rehash : 'weaker') {
      const isDouble = doubles.includes(verifierOf(storedHash))
      const wanted = by ?? policy.hashes
      return !isDouble && isAffordable(wanted) && isDue(storedHash, wanted, mode)
    },
    algorithmOf: (storedHash) => findVerifier(storedHash)?.algorithm(storedHash) ?? 'other',
    batchWidth: () => native?.batchWidth() ?? 1,
    threadMs: () => threads.threadMs() + (native?.threadMs() ?? 0),
  }
}

function readsWhole(password: string, policy: HashPolicy): boolean {
  return policy.algorithm !== 'bcrypt' || bcryptReadsWhole(password)
}

function describe(native: NativeEngine | undefined, known: readonly Verifier[]): string {
  if (native !== undefined) {
    const wrong =
      native.wrong.length > 0 ? `; not used because of wrong answers on this processor: ${native.wrong.join(', ')}` : ''
    return `hashing with ${NATIVE_NAME}, ${native.description}; HASH_ENGINE=packages turns it off${wrong}`
  }
  const packages = known.map(({ engine }) => engine).join(' and ')
  return `hashing with ${packages}, one at a time; with cargo, pnpm start builds ${NATIVE_NAME}, which HASH_ENGINE=native uses`
}
