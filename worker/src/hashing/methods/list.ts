/** The functions behind stored hashes, by name, and the implementations that compute them. */
import type { HashPolicy } from '@spillway/queue/wire/policy'
import type { ExactHash, Setting } from '@spillway/queue/wire/setting'
import { Argon2, type Argon2Options } from '../argon2.js'
import { Bcrypt, type BcryptOptions } from '../bcrypt.js'
import type { Threads } from '../threads.js'
import { firebase, pbkdf2, scrypt } from './derived-key.js'
import { DigestThreads, digests, wrapped } from './digests.js'
import type { AlgorithmName, Method, Password, Recipe, RecipeOf } from './recipe.js'

type ByName = { readonly [Name in Recipe['method']]: Method<RecipeOf<Name>> }

export class Methods {
  readonly argon2: Argon2
  readonly bcrypt: Bcrypt
  readonly #byName: ByName

  private constructor(methods: ByName & { argon2: Argon2; bcrypt: Bcrypt }) {
    this.argon2 = methods.argon2
    this.bcrypt = methods.bcrypt
    this.#byName = methods
  }

  /** Loads and tests the implementations; throws if an algorithm has none that works here. */
  static async load(threads: Threads, options: Argon2Options & BcryptOptions = {}): Promise<Methods> {
    const digestThreads = new DigestThreads(threads)
    // Both at once: Jest loads no package after a test has ended, which may not await its call.
    const [argon2, bcrypt] = await Promise.all([Argon2.load(threads, options), Bcrypt.load(threads, options)])
    return new Methods({
      ...{ argon2, bcrypt, wrapped: wrapped(digestThreads, argon2) },
      ...{ pbkdf2: await pbkdf2(threads, options.native), scrypt: await scrypt(threads, options.native) },
      ...{ firebase: firebase(threads), digest: digests(digestThreads) },
    })
  }

  /** The implementation in use for each family of algorithms. */
  engines(): Record<string, string> {
    return Object.fromEntries(Object.values(this.#byName).map(({ family, engine }) => [family, engine]))
  }

  verify(password: Password, recipe: Recipe, signal?: AbortSignal): Promise<boolean> {
    const method: Method<Recipe> = this.#byName[recipe.method]
    return method.verify(password, recipe, signal)
  }

  /** Whether a worker makes hashes of this cost. */
  isAffordable(by: HashPolicy): boolean {
    return by.algorithm === 'bcrypt' ? this.bcrypt.isAffordable(by.cost) : this.argon2.isAffordable(by)
  }

  /** Expects a cost that is affordable. */
  hash(password: string, by: HashPolicy, signal?: AbortSignal): Promise<string> {
    return by.algorithm === 'bcrypt'
      ? this.bcrypt.hash(password, by.cost, signal)
      : this.argon2.hash(password, by, signal)
  }

  /** Undefined for a setting that costs too much or that no implementation accepts. */
  hashExactly(exact: ExactHash, setting: Setting, signal?: AbortSignal): Promise<string | undefined> {
    return setting.algorithm === 'bcrypt'
      ? this.bcrypt.hashExactly(exact, setting, signal)
      : this.argon2.hashExactly(exact, setting, signal)
  }

  /** A recipe that no known password matches, of the cost of a policy. */
  dummy(by: HashPolicy): Recipe {
    return by.algorithm === 'bcrypt' ? this.bcrypt.dummy(by.cost) : this.argon2.dummy(by)
  }
}

/** The label of a recipe in metrics. */
export function algorithmOf(recipe: Recipe): AlgorithmName {
  if (recipe.method === 'argon2') return recipe.stored.algorithm
  if (recipe.method === 'firebase') return 'scrypt'
  if (recipe.method !== 'digest') return recipe.method
  const { kind } = recipe.program
  return kind === 'plain' || kind === 'md5-crypt' ? 'digest' : kind
}
