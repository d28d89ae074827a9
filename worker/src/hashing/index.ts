/** Hashing by policy: verifies stored hashes of every format, makes new ones and dummy hashes. */
import type { RefusalCode } from '@spillway/queue/wire/job'
import { bcryptReadsWhole, type HashPolicy } from '@spillway/queue/wire/policy'
import { type ExactHash, parseSetting } from '@spillway/queue/wire/setting'
import { isDue, type RehashMode } from '@spillway/queue/wire/stored-hash'
import type { LongPasswords } from './bcrypt.js'
import { Bounds, type Excess } from './bounds.js'
import { createReader, type StoredReading } from './formats/list.js'
import { type FirebaseProject, keyedOwners, type Pepper } from './formats/settings.js'
import { algorithmOf, Methods } from './methods/list.js'
import { type AlgorithmName, UnsupportedHashError } from './methods/recipe.js'
import { NativeEngine } from './native.js'
import { LEAST_ARGON2ID, type Policy } from './policy.js'
import { MEMORY_LIMIT_KIB, policyKib, Threads, type ThreadTimes } from './threads.js'

export type Examined =
  | { kind: 'supported'; reading: StoredReading }
  | { kind: 'too-costly'; reading: StoredReading; excess: Excess }
  | { kind: 'unknown' }

/** A new password that the algorithm of the policy would truncate. */
export class UnsupportedPasswordError extends Error {
  override readonly name = 'UnsupportedPasswordError'
  readonly code: RefusalCode = 'unsupported_password'
}

/** The policy needs more than a slot has on this machine. */
export class UnaffordablePolicyError extends Error {
  override readonly name = 'UnaffordablePolicyError'
}

interface HasherOptions {
  /** Hashing threads [1]. */
  slots?: number
  /** Whether the native engine is used, if it is built [false]. */
  native?: boolean
  /** A slot's memory for one batch, in KiB [1 GiB]. */
  slotKib?: number | undefined
  /** The memory for a stored hash that is verified alone, in KiB [the slot's]. */
  mostKib?: number | undefined
  firebase?: FirebaseProject | undefined
  peppers?: readonly Pepper[] | undefined
  /** Owners of stored hashes that are verified with these secrets [a gateway's accounts]. */
  keyedFor?: ReadonlySet<string | undefined> | undefined
  longPasswords?: LongPasswords | undefined
}

/** Hashes and verifies by the policy of this worker, or by the policy that a request brings. */
export class Hasher {
  readonly #policy: Policy
  readonly #parts: HasherParts
  readonly #read: (text: string) => StoredReading | undefined
  readonly #ofLongPasswords: HashPolicy
  readonly #keyless: Hasher | undefined
  /** The native engine; undefined when not built or disabled. */
  readonly native: NativeEngine | undefined
  /** The algorithm of new hashes and of dummy hashes, for requests without a policy. */
  readonly algorithm: AlgorithmName
  /** The implementation in use for each family of algorithms. */
  readonly engines: Readonly<Record<string, string>>
  /** The memory that a stored hash may take, in KiB. */
  readonly mostKib: number
  /** One sentence for operators: the engine in use, and why not the native one. */
  readonly description: string

  private constructor(policy: Policy, parts: HasherParts, keyless?: Hasher) {
    const { methods, native, whyNot, options, bounds } = parts
    const { firebase, peppers = [] } = options
    this.#policy = policy
    this.#parts = parts
    this.#keyless = keyless
    this.native = native
    this.algorithm = policy.hashes.algorithm
    this.engines = methods.engines()
    this.mostKib = bounds.memoryLimitKib
    this.#read = createReader(keyless === undefined ? { firebase: undefined, peppers: [] } : { firebase, peppers })
    this.#ofLongPasswords = this.#isAffordable(policy.longPasswords) ? policy.longPasswords : LEAST_ARGON2ID
    const packages = `${methods.argon2.engine} and ${methods.bcrypt.engine}, one at a time${whyNot}`
    this.description = `hashing with ${native?.description ?? packages}`
  }

  /**
   * Loads and tests the implementations.
   * @throws UnaffordablePolicyError, and an Error where no implementation works here
   */
  static async load(policy: Policy, options: HasherOptions): Promise<Hasher> {
    const { slots = 1, slotKib = MEMORY_LIMIT_KIB, mostKib = slotKib, longPasswords } = options
    const { hashes } = policy
    const widths = { threadKib: slotKib, policyKib: policyKib(hashes) || undefined }
    const { native, whyNot = '' } = options.native ? await NativeEngine.tryStart(slots, widths) : {}
    // Packages get one share of the memory beside the engine's threads, and all of it without them.
    const threads = new Threads(slots, native === undefined ? Math.max(slots * slotKib, mostKib) : slotKib)
    const methods = await Methods.load(threads, { native, memoryLimitKib: slotKib, longPasswords })
    if (hashes.algorithm === 'argon2id' && !methods.isAffordable(hashes))
      throw new UnaffordablePolicyError(`a hash of the policy takes more memory than a slot has here: ${slotKib} KiB`)
    const width = (algorithm: 'argon2' | 'bcrypt') => (algorithm === 'bcrypt' ? (native?.widthOf(ANY_BCRYPT) ?? 1) : 1)
    const bounds = await Bounds.measure(methods, { policy: hashes, memoryLimitKib: mostKib, width })
    native?.forgetCalls()
    const parts = { methods, bounds, threads, native, whyNot, options }
    return new Hasher(policy, parts, new Hasher(policy, parts))
  }

  /** The hasher for an owner's stored hashes: old systems' secrets are for named owners only. */
  ofOwner(owner: string | undefined): Hasher {
    const { keyedFor = keyedOwners('') } = this.#parts.options
    return keyedFor.has(owner) ? this : (this.#keyless ?? this)
  }

  /** Predicted processor time of a hash of the policy (ms). */
  policyMs(): number {
    return this.#parts.bounds.policyMs()
  }

  /** A new hash by a policy [the worker's]. Throws {@link UnsupportedPasswordError}. */
  async hash(password: string, by: HashPolicy = this.#policy.hashes, signal?: AbortSignal): Promise<string> {
    if (!this.readsWhole(password, by))
      throw new UnsupportedPasswordError('bcrypt would truncate this password (72 bytes)')
    if (!this.#isAffordable(by)) throw new UnsupportedHashError('a hash of this policy takes more than a worker has')
    return await this.#parts.methods.hash(password, by, signal)
  }

  /** A hash by a given setting and salt. Throws {@link UnsupportedHashError}. */
  async hashExactly(exact: ExactHash, signal?: AbortSignal): Promise<string> {
    const { bounds, methods } = this.#parts
    const setting = parseSetting(exact.setting)
    const hash = setting && bounds.accepts(setting) && (await methods.hashExactly(exact, setting, signal))
    if (!hash) throw new UnsupportedHashError('no implementation here makes a hash by that setting')
    return hash
  }

  /**
   * Whether one of these forms of a password matches, in their order. Throws
   * {@link UnsupportedHashError}, also for too high a cost with this password. Signals cancel calls
   * that have not begun.
   */
  async verify(password: string | readonly string[], storedHash: string, signal?: AbortSignal): Promise<boolean> {
    const forms = typeof password === 'string' ? [password] : password
    const { recipes, textsOf = (form) => [form] } = this.#readingOf(storedHash)
    // Each text that may have been hashed, with each function that may have hashed it.
    const texts = [...new Set(forms.flatMap(textsOf))]
    const attempts = texts.flatMap((text) => recipes.map((recipe) => ({ text, recipe })))
    const accepted = this.#parts.bounds.acceptedOf(attempts)
    for (const { text, recipe } of accepted) {
      if (await this.#parts.methods.verify(text, recipe, signal)) return true
      signal?.throwIfAborted()
    }
    if (accepted.length === attempts.length) return false
    throw new UnsupportedHashError('the stored hash costs too much with this password')
  }

  /** Verifies against a hash that no password matches, at the cost of the policy. */
  async dummy(password: string, wanted: HashPolicy = this.#policy.hashes, signal?: AbortSignal): Promise<void> {
    const by = this.#isAffordable(wanted) ? wanted : this.#policy.hashes
    await this.#parts.methods.verify(password, this.#parts.methods.dummy(by), signal)
  }

  /** The policy of a new hash for a right password: argon2id where the worker's would truncate it. */
  policyFor(password: string, policy?: HashPolicy): HashPolicy {
    const { hashes } = this.#policy
    return policy ?? (this.readsWhole(password, hashes) ? hashes : this.#ofLongPasswords)
  }

  readsWhole(password: string, { algorithm }: HashPolicy): boolean {
    return algorithm !== 'bcrypt' || bcryptReadsWhole(password)
  }

  /** Whether a stored hash must be replaced after a match. Throws {@link UnsupportedHashError}. */
  isDue(storedHash: string, by: HashPolicy = this.#policy.hashes, mode: RehashMode = this.#policy.rehash): boolean {
    this.#readingOf(storedHash)
    return this.#isAffordable(by) && isDue(storedHash, by, mode)
  }

  /** Whether the old system accepted other passwords for this one, unlike a new hash. */
  isAmbiguous(password: string, storedHash: string): boolean {
    return this.#read(storedHash)?.isAmbiguous?.(password) ?? false
  }

  /** What a stored hash is, or why it cannot be verified. Too costly recipes are left out. */
  examine(storedHash: string): Examined {
    const reading = this.#read(storedHash)
    if (reading === undefined) return { kind: 'unknown' }
    const [first, ...others] = reading.recipes.filter((recipe) => this.#parts.bounds.excessOf(recipe) === undefined)
    if (first !== undefined) return { kind: 'supported', reading: { ...reading, recipes: [first, ...others] } }
    return { kind: 'too-costly', reading, excess: this.#parts.bounds.excessOf(reading.recipes[0]) ?? {} }
  }

  /** The label of a stored hash for metrics: `other` for one that cannot be verified. */
  algorithmOf(storedHash: string): AlgorithmName {
    const examined = this.examine(storedHash)
    return examined.kind === 'supported' ? algorithmOf(examined.reading.recipes[0]) : 'other'
  }

  /** The number of passwords that a slot hashes at a time: the best number for the last calls. */
  batchWidth(): number {
    return this.native?.batchWidth() ?? 1
  }

  /** The time of the hashing threads so far, counted as in full batches. */
  times(): ThreadTimes {
    const [packages, engine] = [this.#parts.threads.times(), this.native?.times() ?? { wallMs: 0, cpuMs: 0 }]
    return { wallMs: packages.wallMs + engine.wallMs, cpuMs: packages.cpuMs + engine.cpuMs }
  }

  #readingOf(storedHash: string): StoredReading {
    const examined = this.examine(storedHash)
    if (examined.kind === 'supported') return examined.reading
    throw new UnsupportedHashError('the stored hash is of no supported format or cost')
  }

  #isAffordable(by: HashPolicy): boolean {
    return this.#parts.methods.isAffordable(by) && this.#parts.bounds.accepts(by)
  }
}

interface HasherParts {
  methods: Methods
  bounds: Bounds
  threads: Threads
  native: NativeEngine | undefined
  whyNot: string
  options: HasherOptions
}

const ANY_BCRYPT = `$2b$05$${'.'.repeat(53)}`
