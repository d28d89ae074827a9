/** scrypt (RFC 7914), and Firebase's modification of it (github.com/firebase/scrypt). */
import { createCipheriv, scrypt as derive, type ScryptOptions, timingSafeEqual } from 'node:crypto'
import type { NativeEngine } from '../native.js'
import type { Threads } from '../threads.js'
import { derivedKeyMethod } from './derived-key.js'
import type { FirebaseRecipe, Method, Password, ScryptCost, ScryptRecipe } from './recipe.js'

export function scrypt(threads: Threads, native?: NativeEngine): Promise<Method<ScryptRecipe>> {
  return derivedKeyMethod<ScryptRecipe>(threads, native, {
    family: 'scrypt',
    nativeSetting: ({ cost, blockSize, parallelization }) =>
      `$scrypt$ln=${Math.log2(cost)},r=${blockSize},p=${parallelization}`,
    derive: (password, recipe) => deriveKey(password, recipe.salt, recipe.key.length, recipe),
    memoryBytes,
    knownAnswers,
  })
}

/** By OpenSSL. */
const knownAnswers = [
  { password: 'password', salt: 'salt', key: 'NUJ4TjpnKfytPoMazeBlk1hjrFndx33caQQ7tV8aiDc' },
  { password: 'U*U', salt: 'NaCl', key: 'I3jXhrpz0gg3wlH51s4Tv3zUs1B8KQihag/WvIY+GRw' },
].map(({ password, salt, key }) => ({
  password,
  stored: {
    ...({ method: 'scrypt', cost: 16, blockSize: 2, parallelization: 1 } as const),
    ...{ salt: Buffer.from(salt), key: Buffer.from(key, 'base64') },
  },
}))

const AES_KEY_BYTES = 32
/** Each key encrypts one text alone. */
const COUNTER = Buffer.alloc(16)

export function firebase(threads: Threads): Method<FirebaseRecipe> {
  return {
    family: 'firebase',
    engine: 'node:crypto',
    async verify(password, { salt, signerKey, encrypted, ...cost }) {
      const key = await threads.run(() => deriveKey(password, salt, AES_KEY_BYTES, cost), memoryBytes(cost) / 1_024)
      return timingSafeEqual(createCipheriv('aes-256-ctr', key, COUNTER).update(signerKey), encrypted)
    },
  }
}

function deriveKey(password: Password, salt: Buffer, bytes: number, of: ScryptCost): Promise<Buffer> {
  const { cost, blockSize, parallelization } = of
  const options: ScryptOptions = { cost, blockSize, parallelization, maxmem: 2 * memoryBytes(of) }
  return new Promise((resolve, reject) => {
    derive(password, salt, bytes, options, (error, derived) => (error ? reject(error) : resolve(derived)))
  })
}

export function memoryBytes({ cost, blockSize, parallelization }: ScryptCost): number {
  return 128 * blockSize * (cost + parallelization)
}
