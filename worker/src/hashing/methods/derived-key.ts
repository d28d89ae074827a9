/**
 * Methods that derive a key from password and salt: by the native engine where that knows the function, otherwise by node:crypto.
 */
import { timingSafeEqual } from 'node:crypto'
import { unpadded } from '@spillway/client/protocol/base64'
import { type Engine, type KnownAnswer, loadEngines, verifyByFirst } from '../engine.js'
import { NATIVE_NAME, type NativeEngine } from '../native.js'
import type { Threads } from '../threads.js'
import type { Method, Password, Pbkdf2Recipe, ScryptRecipe } from './recipe.js'

type DerivedKey = Pbkdf2Recipe | ScryptRecipe

export interface Derivation<R extends DerivedKey> {
  family: R['method']
  /** The native engine's setting without the salt, as a PHC string begins; undefined for what it does not know. */
  nativeSetting(recipe: R): string | undefined
  /** The key, by node:crypto. */
  derive(password: Password, recipe: R): Promise<Buffer>
  /** What that takes, where it takes much. */
  memoryBytes?(recipe: R): number
  knownAnswers: readonly KnownAnswer<R>[]
}

interface KeyEngine<R extends DerivedKey> extends Engine<R> {
  takes(recipe: R): boolean
}

export async function derivedKeyMethod<R extends DerivedKey>(
  threads: Threads,
  native: NativeEngine | undefined,
  derivation: Derivation<R>,
): Promise<Method<R>> {
  const engines = await loadEngines(
    [() => nativeEngine(native, derivation), () => nodeEngine(threads, derivation)],
    derivation.knownAnswers,
  )
  return {
    family: derivation.family,
    engine: engines.first.name,
    verify(password, recipe, signal) {
      return verifyByFirst(engines, password, recipe, { signal, takes: ({ takes }) => takes(recipe) })
    },
  }
}

async function nativeEngine<R extends DerivedKey>(
  native: NativeEngine | undefined,
  { nativeSetting }: Derivation<R>,
): Promise<KeyEngine<R>> {
  if (native === undefined) throw new Error('it is not built, or turned off')
  return {
    name: NATIVE_NAME,
    takes: (recipe) => nativeSetting(recipe) !== undefined,
    verify(password, recipe, signal) {
      const phc = [nativeSetting(recipe), unpadded(recipe.salt), unpadded(recipe.key)].join('$')
      return native.verify(password, phc, { signal })
    },
  }
}

async function nodeEngine<R extends DerivedKey>(
  { run }: Threads,
  { derive, memoryBytes = () => 0 }: Derivation<R>,
): Promise<KeyEngine<R>> {
  return {
    name: 'node:crypto',
    takes: () => true,
    verify: async (password, recipe) =>
      timingSafeEqual(await run(() => derive(password, recipe), memoryBytes(recipe) / 1_024), recipe.key),
  }
}
