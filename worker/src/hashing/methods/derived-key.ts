/**
 * Methods that derive a key from password and salt: by the native engine where that knows the function, otherwise by node:crypto.
 */
import { pbkdf2 as derive, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { unpadded } from '@spillway/queue/wire/stored-hash'
import { type Engine, Engines, type KnownAnswer } from '../engine.js'
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
  const engines = await Engines.load<KeyEngine<R>, R>(
    [() => nativeEngine(native, derivation), () => nodeEngine(threads, derivation)],
    derivation.knownAnswers,
  )
  return {
    family: derivation.family,
    engine: engines.first.name,
    verify: (password, recipe, signal) =>
      engines.verify(password, recipe, { signal, takes: ({ takes }) => takes(recipe) }),
  }
}

async function nativeEngine<R extends DerivedKey>(
  native: NativeEngine | undefined,
  { nativeSetting }: Derivation<R>,
): Promise<KeyEngine<R>> {
  if (native === undefined) throw new Error('native engine not built or disabled')
  return {
    name: NATIVE_NAME,
    takes: (recipe) => nativeSetting(recipe) !== undefined,
    verify(password, recipe, signal) {
      const phc = [nativeSetting(recipe), unpadded(recipe.salt), unpadded(recipe.key)].join('$')
      return native.verify(password, phc, signal)
    },
  }
}

async function nodeEngine<R extends DerivedKey>(
  threads: Threads,
  { derive, memoryBytes = () => 0 }: Derivation<R>,
): Promise<KeyEngine<R>> {
  return {
    name: 'node:crypto',
    takes: () => true,
    verify: async (password, recipe) =>
      timingSafeEqual(await threads.run(() => derive(password, recipe), memoryBytes(recipe) / 1_024), recipe.key),
  }
}

// PBKDF2 (RFC 8018, 5.2) with SHA-1, SHA-256 or SHA-512.

const deriveKey = promisify(derive)

export function pbkdf2(threads: Threads, native?: NativeEngine): Promise<Method<Pbkdf2Recipe>> {
  return derivedKeyMethod<Pbkdf2Recipe>(threads, native, {
    family: 'pbkdf2',
    nativeSetting: ({ digest, iterations }) => (digest === 'sha256' ? `$pbkdf2-sha256$i=${iterations}` : undefined),
    derive: (password, { salt, iterations, key, digest }) => deriveKey(password, salt, iterations, key.length, digest),
    knownAnswers,
  })
}

/** RFC 7914, 11, and by OpenSSL. */
const knownAnswers = [
  {
    password: 'passwd',
    iterations: 1,
    key: 'VawEblbjCJ/sFpHCJUS2BflBhSFt3gRl5oudV8INrLxJypzM8Xm2RZkWZLOdd+8xfHG4RbHjC9UJESBB06GXgw',
  },
  { password: 'password', iterations: 20, key: 'g+sQC2o6l18P4//NwkGYUjIVTmhova8bJhzLGP7kyQg' },
].map(({ password, iterations, key }) => ({
  password,
  stored: {
    ...({ method: 'pbkdf2', digest: 'sha256' } as const),
    ...{ iterations, salt: Buffer.from('salt'), key: Buffer.from(key, 'base64') },
  },
}))
