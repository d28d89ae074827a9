/** PBKDF2 (RFC 8018, 5.2) with SHA-1, SHA-256 or SHA-512. */
import { pbkdf2 as derive } from 'node:crypto'
import { promisify } from 'node:util'
import type { NativeEngine } from '../native.js'
import type { Threads } from '../threads.js'
import { derivedKeyMethod } from './derived-key.js'
import type { Method, Pbkdf2Recipe } from './recipe.js'

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
