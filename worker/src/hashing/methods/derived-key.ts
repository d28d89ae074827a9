/**
 * PBKDF2 (RFC 8018, 5.2), scrypt (RFC 7914), and Firebase's modification of scrypt
 * (github.com/firebase/scrypt), by the native engine or by node:crypto.
 */
import {
  createCipheriv,
  pbkdf2 as derivePbkdf2,
  scrypt as deriveScrypt,
  type ScryptOptions,
  timingSafeEqual,
} from 'node:crypto'
import { promisify } from 'node:util'
import { unpadded } from '@spillway/queue/wire/stored-hash'
import { type Engine, Engines, type KnownAnswer } from '../engine.js'
import { NATIVE_NAME, type NativeEngine } from '../native.js'
import type { Threads } from '../threads.js'
import type { FirebaseRecipe, Method, Password, Pbkdf2Recipe, ScryptCost, ScryptRecipe } from './recipe.js'

interface Derivation<R extends Pbkdf2Recipe | ScryptRecipe> {
  family: R['method']
  /** A PHC string up to the salt; undefined if unknown to the native engine. */
  nativeSetting(recipe: R): string | undefined
  /** The key, by node:crypto. */
  derive(password: Password, recipe: R): Promise<Buffer>
  /** Memory of a derivation, where it takes much [0]. */
  memoryBytes?(recipe: R): number
  knownAnswers: readonly KnownAnswer<R>[]
}

async function methodOf<R extends Pbkdf2Recipe | ScryptRecipe>(
  threads: Threads,
  native: NativeEngine | undefined,
  { family, nativeSetting, derive, memoryBytes = () => 0, knownAnswers }: Derivation<R>,
): Promise<Method<R>> {
  const nativeEngine = (engine: NativeEngine): Engine<R> => ({
    name: NATIVE_NAME,
    async verify(password, recipe, signal) {
      const setting = nativeSetting(recipe)
      if (setting === undefined) throw new Error(`the native engine has no such ${family}`)
      const stored = [setting, unpadded(recipe.salt), unpadded(recipe.key)].join('$')
      return await threads.inEngine(() => engine.verify(password, stored, signal), memoryBytes(recipe) / 1_024)
    },
  })
  const nodeEngine: Engine<R> = {
    name: 'node:crypto',
    verify: async (password, recipe) =>
      timingSafeEqual(await threads.run(() => derive(password, recipe), memoryBytes(recipe) / 1_024), recipe.key),
  }
  const candidates = [native && (async () => nativeEngine(native)), async () => nodeEngine]
  const engines = await Engines.load<Engine<R>, R>(candidates, knownAnswers)
  return {
    family,
    engine: engines.first.name,
    verify: (password, recipe, signal) => engines.verify(password, recipe, signal),
  }
}

const pbkdf2Key = promisify(derivePbkdf2)

export function pbkdf2(threads: Threads, native?: NativeEngine): Promise<Method<Pbkdf2Recipe>> {
  return methodOf<Pbkdf2Recipe>(threads, native, {
    family: 'pbkdf2',
    nativeSetting: ({ digest, iterations }) => (digest === 'sha256' ? `$pbkdf2-sha256$i=${iterations}` : undefined),
    derive: (password, { salt, iterations, key, digest }) => pbkdf2Key(password, salt, iterations, key.length, digest),
    // RFC 7914, 11, and by OpenSSL.
    knownAnswers: [
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
    })),
  })
}

export function scrypt(threads: Threads, native?: NativeEngine): Promise<Method<ScryptRecipe>> {
  return methodOf<ScryptRecipe>(threads, native, {
    family: 'scrypt',
    nativeSetting: ({ cost, blockSize, parallelization }) =>
      `$scrypt$ln=${Math.log2(cost)},r=${blockSize},p=${parallelization}`,
    derive: (password, recipe) => scryptKey(password, recipe.salt, recipe.key.length, recipe),
    memoryBytes: scryptMemoryBytes,
    // By OpenSSL.
    knownAnswers: [
      { password: 'password', salt: 'salt', key: 'NUJ4TjpnKfytPoMazeBlk1hjrFndx33caQQ7tV8aiDc' },
      { password: 'U*U', salt: 'NaCl', key: 'I3jXhrpz0gg3wlH51s4Tv3zUs1B8KQihag/WvIY+GRw' },
    ].map(({ password, salt, key }) => ({
      password,
      stored: {
        ...({ method: 'scrypt', cost: 16, blockSize: 2, parallelization: 1 } as const),
        ...{ salt: Buffer.from(salt), key: Buffer.from(key, 'base64') },
      },
    })),
  })
}

const AES_KEY_BYTES = 32
/** Each key encrypts only one text. */
const COUNTER = Buffer.alloc(16)

export function firebase(threads: Threads): Method<FirebaseRecipe> {
  return {
    family: 'firebase',
    engine: 'node:crypto',
    async verify(password, { salt, signerKey, encrypted, ...cost }) {
      const derive = () => scryptKey(password, salt, AES_KEY_BYTES, cost)
      const key = await threads.run(derive, scryptMemoryBytes(cost) / 1_024)
      return timingSafeEqual(createCipheriv('aes-256-ctr', key, COUNTER).update(signerKey), encrypted)
    },
  }
}

function scryptKey(password: Password, salt: Buffer, bytes: number, of: ScryptCost): Promise<Buffer> {
  const { cost, blockSize, parallelization } = of
  const options: ScryptOptions = { cost, blockSize, parallelization, maxmem: 2 * scryptMemoryBytes(of) }
  return new Promise((resolve, reject) => {
    deriveScrypt(password, salt, bytes, options, (error, derived) => (error ? reject(error) : resolve(derived)))
  })
}

export function scryptMemoryBytes({ cost, blockSize, parallelization }: ScryptCost): number {
  return 128 * blockSize * (cost + parallelization)
}
