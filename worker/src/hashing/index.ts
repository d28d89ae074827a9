/** Hashing by policy: verifies stored hashes of every format, tells whether one is below the policy, and provides the decoy. */
import type { HashRequest, RefusalCode, VerifyRequest } from '@spillway/client/protocol/job'
import { bcryptReadsWhole, type HashPolicy } from '@spillway/client/protocol/policy'
import { type ExactHash, parseSetting } from '@spillway/client/protocol/setting'
import { isDue, type RehashMode } from '@spillway/client/protocol/stored-hash'
import { foretell, type Work, workOf, workOfRequest } from '@spillway/client/protocol/work'
import { HOW_TO_HAVE } from './addon-file.js'
import type { AlgorithmName } from './algorithm.js'
import type { LongPasswords } from './bcrypt.js'
import { type Bounds, type Excess, measureBounds } from './bounds.js'
import { createReader, type StoredReading } from './formats/list.js'
import { type FirebaseProject, keyedOwners, type Pepper } from './formats/settings.js'
import { MEMORY_LIMIT_KIB, policyKib } from './memory-limit.js'
import { algorithmOf, createMethods, verifyRecipe } from './methods/list.js'
import type { Method } from './methods/recipe.js'
import { NATIVE_NAME, type NativeEngine, NoEngineError, startNativeEngine } from './native.js'
import { LEAST_ARGON2ID, loadAlgorithms, type Policy } from './policy.js'
import { testDoubles } from './testdoubles.js'
import { createThreads, type ThreadTimes } from './threads.js'

export interface Hasher {
  /**
   * The hasher for the stored hashes of an owner (see VerifyRequest). For an owner whom the operator did not name, a stored hash that needs
   * a secret of an old system is of no format, whether there is such a secret or not.
   */
  ofOwner(owner: string | undefined): Hasher
  /** The algorithm of new hashes and of decoys, for requests without a policy. */
  readonly algorithm: AlgorithmName
  /** Which matching hashes are replaced, for requests without a policy. */
  readonly rehash: RehashMode
  /** The implementation in use for each family of algorithms. */
  readonly engines: Readonly<Record<string, string>>
  /** One sentence for operators: the engine in use, and why not the native one. */
  readonly description: string
  /** The native engine, which hashes several passwords at a time; undefined when it is not built or turned off. */
  readonly native: NativeEngine | undefined
  /** The times of small hashes: they predict costs that were not met yet. */
  readonly unitCosts: Bounds['unitCosts']
  /**
   * What a request takes, in milliseconds: by its units; undefined for a stored hash whose units were not measured. One that cannot be
   * verified takes a decoy.
   */
  foretell(request: HashRequest | VerifyRequest): number | undefined
  /** A new hash by a policy [the worker's]. Throws {@link UnsupportedPasswordError}. */
  hash(password: string, policy?: HashPolicy, signal?: AbortSignal): Promise<string>
  /** A hash of which all is given. Throws {@link UnsupportedHashError} for a setting that costs too much or that nothing here takes. */
  hashExactly(exact: ExactHash, signal?: AbortSignal): Promise<string>
  /**
   * Whether one of these forms of a password matches, the first of them tried first: as a gateway normalizes it, and as it was typed. Throws
   * {@link UnsupportedHashError} for a stored hash of no format, or one that costs too much with this password. Signals cancel calls that have not begun.
   */
  verify(password: string | readonly string[], storedHash: string, signal?: AbortSignal): Promise<boolean>
  /** The work of {@link Hasher.verify} for one form at the cost of the policy, with a hash that no password matches. */
  decoy(password: string, policy?: HashPolicy, signal?: AbortSignal): Promise<void>
  /**
   * By what a right password is hashed anew: a policy [the worker's]. Where that of the worker is bcrypt, and would truncate the password,
   * it is argon2id.
   */
  policyFor(password: string, policy?: HashPolicy): HashPolicy
  /** Whether the policy reads all of a password. */
  readsWhole(password: string, policy: HashPolicy): boolean
  /**
   * Whether a stored hash must be replaced after a match [policy and mode of the worker; with a policy: `weaker`]. Throws
   * {@link UnsupportedHashError}.
   */
  isDue(storedHash: string, policy?: HashPolicy, mode?: RehashMode): boolean
  /** Whether a new hash of this password would refuse another that the old system took for the same. */
  isAmbiguous(password: string, storedHash: string): boolean
  /** What a stored hash is, or why it cannot be verified. */
  examine(storedHash: string): Examined
  /** The label of a stored hash for metrics: `other` for one that cannot be verified. */
  algorithmOf(storedHash: string): AlgorithmName
  /** How many passwords a slot hashes at a time, as it is best for the last ones. */
  batchWidth(): number
  /** The time of the hashing threads so far, counted as in full batches. */
  times(): ThreadTimes
}

export type Examined =
  | { kind: 'supported'; reading: StoredReading }
  | { kind: 'too-costly'; reading: StoredReading; excess: Excess }
  | { kind: 'unknown' }

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
  /** The memory that a slot has for one hash, or several together, in KiB: see memory-limit.ts [1 GiB]. */
  slotKib?: number | undefined
  /** The project whose accounts were imported from Firebase, if there is one. */
  firebase?: FirebaseProject | undefined
  /** Secrets that old systems hashed with passwords [no secret]. */
  peppers?: readonly Pepper[] | undefined
  /** The owners of stored hashes that are verified with these secrets [a gateway's accounts]. */
  keyedFor?: ReadonlySet<string | undefined> | undefined
  /** Of stored bcrypt hashes whose passwords are longer than it reads [cut]. */
  longPasswords?: LongPasswords | undefined
}

/**
 * Loads and tests the implementations.
 * @throws UnaffordablePolicyError, and an Error where no implementation of an algorithm works here
 */
export async function createHasher(policy: Policy, options: HasherOptions): Promise<Hasher> {
  const { slots = 1, slotKib: memoryLimitKib = MEMORY_LIMIT_KIB, firebase, peppers = [], longPasswords } = options
  const { keyedFor = keyedOwners('') } = options
  const { native, whyNot } = options.native ? await tryNative(slots, policy, memoryLimitKib) : {}
  // Beside the engine's threads packages have one share of the memory, and without it all shares.
  const threads = createThreads(slots, (native === undefined ? slots : 1) * memoryLimitKib)
  const algorithms = await loadAlgorithms(threads, { native, memoryLimitKib, longPasswords })
  const { argon2, bcrypt } = algorithms
  const methods = await createMethods({ threads, native, algorithms })
  const width = (algorithm: 'argon2' | 'bcrypt') => (algorithm === 'bcrypt' ? (native?.widthOf(ANY_BCRYPT) ?? 1) : 1)
  const bounds = await measureBounds(algorithms, { policy: policy.hashes, memoryLimitKib, width })
  native?.forgetCalls()
  const doubles = options.testHashes ? testDoubles(threads) : []
  const doubleOf = (storedHash: string) => doubles.find(({ recognizes }) => recognizes(storedHash))

  const isAffordable = (by: HashPolicy): boolean =>
    (by.algorithm === 'bcrypt' ? bcrypt.isAffordable(by) : argon2.isAffordable(by)) && bounds.accepts(by)
  if (policy.hashes.algorithm === 'argon2id' && !argon2.isAffordable(policy.hashes))
    throw new UnaffordablePolicyError(
      `a hash of the policy takes more memory than a slot has here: ${memoryLimitKib} KiB`,
    )

  const ofLongPasswords = isAffordable(policy.longPasswords) ? policy.longPasswords : LEAST_ARGON2ID
  const whole = hasherBy(createReader({ firebase, peppers }))
  const keyless = hasherBy(createReader({ firebase: undefined, peppers: [] }))
  return whole

  function hasherBy(read: (text: string) => StoredReading | undefined): Hasher {
    function examine(storedHash: string): Examined {
      const reading = read(storedHash)
      if (reading === undefined) return { kind: 'unknown' }
      // Of several that it may have been made with, those that cost too much here are not tried.
      const [first, ...others] = reading.recipes.filter((recipe) => bounds.excessOf(recipe) === undefined)
      if (first !== undefined) return { kind: 'supported', reading: { ...reading, recipes: [first, ...others] } }
      return { kind: 'too-costly', reading, excess: bounds.excessOf(reading.recipes[0]) ?? {} }
    }

    function readingOf(storedHash: string): StoredReading {
      const examined = examine(storedHash)
      if (examined.kind === 'supported') return examined.reading
      throw new UnsupportedHashError('the stored hash is of no supported format or cost')
    }

    function workOfJob(request: HashRequest | VerifyRequest): Work | undefined {
      if (!('storedHash' in request) || request.storedHash === null) return workOfRequest(request, policy.hashes)
      if (doubleOf(request.storedHash) !== undefined) return undefined
      const examined = examine(request.storedHash)
      if (examined.kind !== 'supported') return workOfRequest({ ...request, storedHash: null }, policy.hashes)
      const [recipe] = examined.reading.recipes
      if (recipe.method === 'bcrypt') return workOf({ algorithm: 'bcrypt', cost: recipe.cost })
      if (recipe.method === 'wrapped') return workOf(recipe.outer.stored)
      return recipe.method === 'argon2' ? workOf(recipe.stored) : undefined
    }

    return {
      ofOwner: (owner) => (keyedFor.has(owner) ? whole : keyless),
      algorithm: policy.algorithm,
      rehash: policy.rehash,
      engines: Object.fromEntries(Object.values(methods).map(({ family, engine }) => [family, engine])),
      description: describe(native, [argon2, bcrypt], whyNot),
      native,
      unitCosts: bounds.unitCosts,
      foretell(request) {
        const work = workOfJob(request)
        return work && foretell(work, bounds.unitCosts)
      },
      async hash(password, by = policy.hashes, signal) {
        if (!readsWhole(password, by)) throw new UnsupportedPasswordError('bcrypt does not read this password whole')
        if (!isAffordable(by)) throw new UnsupportedHashError('a hash of this policy takes more than a worker has')
        if (by.algorithm === 'bcrypt') return await bcrypt.hash(password, by, signal)
        return await argon2.hash(password, by, signal)
      },
      async hashExactly(exact, signal) {
        const parsed = parseSetting(exact.setting)
        const setting = parsed !== undefined && bounds.accepts(parsed) ? parsed : undefined
        const isBcrypt = setting?.algorithm === 'bcrypt'
        const hash = isBcrypt
          ? await bcrypt.hashExactly(exact, setting, signal)
          : setting && (await argon2.hashExactly(exact, setting, signal))
        if (hash === undefined) throw new UnsupportedHashError('no implementation here makes a hash by that setting')
        return hash
      },
      async verify(password, storedHash, signal) {
        const forms = typeof password === 'string' ? [password] : password
        const double = doubleOf(storedHash)
        if (double !== undefined) return await double.verify(forms[0] ?? '', storedHash)
        const { recipes, textsOf = (form) => [form] } = readingOf(storedHash)
        // Each text that may have been hashed, with each function that it may have been hashed with.
        const texts = [...new Set(forms.flatMap(textsOf))]
        const attempts = texts.flatMap((text) => recipes.map((recipe) => ({ text, recipe })))
        const accepted = bounds.acceptedOf(attempts)
        for (const { text, recipe } of accepted) {
          if (await verifyRecipe(methods, text, recipe, signal)) return true
          signal?.throwIfAborted()
        }
        if (accepted.length === attempts.length) return false
        throw new UnsupportedHashError('the stored hash costs too much with this password')
      },
      async decoy(password, wanted = policy.hashes, signal) {
        const by = isAffordable(wanted) ? wanted : policy.hashes
        const recipe = by.algorithm === 'bcrypt' ? bcrypt.decoy(by) : argon2.decoy(by)
        await verifyRecipe(methods, password, recipe, signal)
      },
      policyFor: (password, by) => by ?? (readsWhole(password, policy.hashes) ? policy.hashes : ofLongPasswords),
      readsWhole,
      isDue(storedHash, by, mode = by === undefined ? policy.rehash : 'weaker') {
        const isDouble = doubleOf(storedHash) !== undefined
        if (!isDouble) readingOf(storedHash)
        const wanted = by ?? policy.hashes
        return !isDouble && isAffordable(wanted) && isDue(storedHash, wanted, mode)
      },
      isAmbiguous: (password, storedHash) => read(storedHash)?.isAmbiguous?.(password) ?? false,
      examine,
      algorithmOf(storedHash) {
        const examined = examine(storedHash)
        return examined.kind === 'supported' ? algorithmOf(examined.reading.recipes[0]) : 'other'
      },
      batchWidth: () => native?.batchWidth() ?? 1,
      times() {
        const [packages, engine] = [threads.times(), native?.times() ?? { wallMs: 0, cpuMs: 0 }]
        return { wallMs: packages.wallMs + engine.wallMs, cpuMs: packages.cpuMs + engine.cpuMs }
      },
    }
  }
}

/** Its cost decides how many are done at a time. */
const ANY_BCRYPT = `$2b$05$${'.'.repeat(53)}`

function readsWhole(password: string, policy: HashPolicy): boolean {
  return policy.algorithm !== 'bcrypt' || bcryptReadsWhole(password)
}

interface TriedNative {
  native?: NativeEngine
  /** What is said after the names of the packages that hash in its place. */
  whyNot?: string
}

async function tryNative(slots: number, { hashes }: Policy, threadKib: number): Promise<TriedNative> {
  try {
    return { native: await startNativeEngine(slots, { threadKib, policyKib: policyKib(hashes) || undefined }) }
  } catch (error) {
    if (error instanceof NoEngineError) return { whyNot: `; ${HOW_TO_HAVE}` }
    const reason = error instanceof Error ? error.message : String(error)
    return { whyNot: `, because ${NATIVE_NAME} cannot be used: ${reason}` }
  }
}

/** What to do for huge pages; nothing where there are some, or where that is not known. */
const HUGE_PAGES_MISSING =
  '; Linux gave argon2 no huge pages, which save a tenth of its time: /sys/kernel/mm/transparent_hugepage/enabled of the node must be madvise or always'

function describe(native: NativeEngine | undefined, known: readonly Method<never>[], whyNot = ''): string {
  if (native !== undefined) {
    const wrong =
      native.wrong.length > 0 ? `; not used because of wrong answers on this processor: ${native.wrong.join(', ')}` : ''
    const pages = native.hugePages === false ? HUGE_PAGES_MISSING : ''
    return `hashing with ${NATIVE_NAME}, ${native.description}${pages}${wrong}`
  }
  return `hashing with ${known.map(({ engine }) => engine).join(' and ')}, one at a time${whyNot}`
}
