/** bcrypt, for verification only: accounts imported from older systems get an argon2id hash at their next login. */

import type { Verifier } from './algorithm.js'
import { type Engine, type KnownAnswer, loadEngines, verifyByFirst } from './engine.js'
import { NATIVE_NAME, type NativeEngine } from './native.js'
import type { Threads } from './threads.js'

/** bcrypt ignores all bytes after these, and implementations stop at a NUL: either would let a prefix of the password match. */
const PASSWORD_LIMIT_BYTES = 72
const COST_LIMIT = 17

const MODULAR_CRYPT = /^\$2[aby]\$(\d{2})\$[./A-Za-z0-9]{53}$/

export async function createBcrypt(threads: Threads, native?: NativeEngine): Promise<Verifier> {
  const engines = await loadEngines(
    [() => nativeEngine(native), () => nodeRsEngine(threads), () => nodeEngine(threads)],
    knownAnswers,
  )
  return {
    family: 'bcrypt',
    engine: engines[0].name,
    recognizes(storedHash) {
      const cost = Number(MODULAR_CRYPT.exec(storedHash)?.[1])
      return cost >= 4 && cost <= COST_LIMIT
    },
    algorithm: () => 'bcrypt',
    async verify(password, storedHash, signal) {
      // `2y` is PHP's name for `2b`.
      const hash = storedHash.replace(/^\$2y\$/, '$2b$')
      const readWhole = Buffer.byteLength(password) <= PASSWORD_LIMIT_BYTES && !password.includes('\0')
      const matches = await verifyByFirst(engines, readWhole ? password : '', hash, signal)
      return readWhole && matches
    },
    isBelow: () => true,
  }
}

async function nativeEngine(native: NativeEngine | undefined): Promise<Engine> {
  if (native === undefined) throw new Error('it is not built, or turned off')
  return {
    name: NATIVE_NAME,
    verify: (password, storedHash, signal) => native.verify(password, storedHash, { signal }),
  }
}

async function nodeRsEngine({ run }: Threads): Promise<Engine> {
  const { verify } = await import('@node-rs/bcrypt')
  return { name: '@node-rs/bcrypt', verify: (password, storedHash) => run(() => verify(password, storedHash)) }
}

async function nodeEngine({ run }: Threads): Promise<Engine> {
  const { default: bcrypt } = await import('bcrypt')
  return { name: 'bcrypt', verify: (password, storedHash) => run(() => bcrypt.compare(password, storedHash)) }
}

/** Test vectors of Openwall's crypt_blowfish. */
const knownAnswers: KnownAnswer[] = [
  { password: 'U*U', storedHash: '$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW' },
  { password: 'U*U*', storedHash: '$2a$05$CCCCCCCCCCCCCCCCCCCCC.VGOzA784oUp/Z0DY336zx7pLYAy0lwK' },
]
