/** The functions behind stored hashes, by name, and the implementations that compute them. */
import type { NativeEngine } from '../native.js'
import type { Algorithms } from '../policy.js'
import type { Threads } from '../threads.js'
import { firebase, pbkdf2, scrypt } from './derived-key.js'
import { DigestThreads, digests, wrapped } from './digests.js'
import type { AlgorithmName, Method, Password, Recipe, RecipeOf } from './recipe.js'

export type Methods = { readonly [Name in Recipe['method']]: Method<RecipeOf<Name>> }

/** Loads and tests the implementations. */
export async function loadMethods(
  threads: Threads,
  native: NativeEngine | undefined,
  { argon2, bcrypt }: Algorithms,
): Promise<Methods> {
  const digestThreads = new DigestThreads(threads)
  return {
    ...{ argon2, bcrypt, pbkdf2: await pbkdf2(threads, native), scrypt: await scrypt(threads, native) },
    ...{ firebase: firebase(threads), digest: digests(digestThreads), wrapped: wrapped(digestThreads, argon2) },
  }
}

/** Whether a password matches a recipe. */
export function verifyRecipe(
  methods: Methods,
  password: Password,
  recipe: Recipe,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  switch (recipe.method) {
    case 'argon2':
      return methods.argon2.verify(password, recipe, signal)
    case 'bcrypt':
      return methods.bcrypt.verify(password, recipe, signal)
    case 'pbkdf2':
      return methods.pbkdf2.verify(password, recipe, signal)
    case 'scrypt':
      return methods.scrypt.verify(password, recipe, signal)
    case 'firebase':
      return methods.firebase.verify(password, recipe, signal)
    case 'digest':
      return methods.digest.verify(password, recipe, signal)
    case 'wrapped':
      return methods.wrapped.verify(password, recipe, signal)
  }
}

/** The label of a recipe in metrics. */
export function algorithmOf(recipe: Recipe): AlgorithmName {
  if (recipe.method === 'argon2') return recipe.stored.algorithm
  if (recipe.method === 'firebase') return 'scrypt'
  if (recipe.method !== 'digest') return recipe.method
  const { kind } = recipe.program
  return kind === 'plain' || kind === 'md5-crypt' || kind === 'sha1-crypt' ? 'digest' : kind
}
