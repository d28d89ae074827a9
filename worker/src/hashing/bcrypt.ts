/** bcrypt, in the modular crypt format. New hashes are `2b`. */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import {
  type BcryptSetting,
  bcryptSetting,
  decodeBcrypt,
  encodeBcrypt,
  newBcryptSetting,
} from '@spillway/queue/wire/setting'
import type { Algorithm } from './algorithm.js'
import { type Engine, Engines, type KnownAnswer } from './engine.js'
import type { BcryptRecipe, Password } from './methods/recipe.js'
import { NATIVE_NAME, type NativeEngine } from './native.js'
import type { Threads } from './threads.js'

/** The lowest cost there is, and the highest that is accepted: one bad row must not exhaust a worker. */
const LOWEST_COST = 4
const COST_LIMIT = 17
const DIGEST_BYTES = 23
/** The key schedule reads so many bytes: the password with its NUL, again and again. */
const KEY_BYTES = 72

/** A stored hash was made of the first 72 bytes, as nearly all of bcrypt's implementations do, or by one that refuses longer passwords. */
export const longPasswordModes = ['cut', 'refuse'] as const
export type LongPasswords = (typeof longPasswordModes)[number]

export interface BcryptCost {
  cost: number
}

interface BcryptEngine extends Engine {
  /** Reads 72 bytes of a password; a NUL among them is one like any other. */
  hash(password: Password, setting: BcryptSetting, signal?: AbortSignal): Promise<string>
}

export type Bcrypt = Algorithm<BcryptCost, BcryptSetting, BcryptRecipe>

export interface BcryptOptions {
  native?: NativeEngine | undefined
  longPasswords?: LongPasswords | undefined
}

export async function loadBcrypt(threads: Threads, options: BcryptOptions = {}): Promise<Bcrypt> {
  const { native, longPasswords = 'cut' } = options
  const candidates = [() => nativeEngine(native), () => nodeRsEngine(threads), () => nodeEngine(threads)]
  const engines = await Engines.load(candidates, knownAnswers)
  const isAffordable = ({ cost }: BcryptCost) => cost >= LOWEST_COST && cost <= COST_LIMIT
  return {
    family: 'bcrypt',
    engine: engines.first.name,
    isAffordable,
    hash: (password, { cost }, signal) => engines.first.hash(password, newBcryptSetting(cost), signal),
    async hashExactly({ password }, setting, signal) {
      if (!isAffordable(setting)) return undefined
      return await engines.first.hash(Buffer.from(password, 'base64'), setting, signal)
    },
    decoy({ cost }) {
      const { salt } = newBcryptSetting(cost)
      return { method: 'bcrypt', variant: '2b', cost, salt, digest: encodeBcrypt(randomBytes(DIGEST_BYTES)) }
    },
    async verify(password, { variant, cost, salt, digest }, signal) {
      const key = keyOf(Buffer.from(password), variant, longPasswords)
      const setting: BcryptSetting = { algorithm: 'bcrypt', cost, salt }
      // A key of this variant is read whole, whatever its bytes are.
      if (variant === '2x' && key !== undefined) {
        const made = await engines.first.hash(key, setting, signal)
        return timingSafeEqual(Buffer.from(made.slice(-digest.length)), Buffer.from(digest))
      }
      const matches = await engines.verify(key ?? '', bcryptSetting(setting) + digest, { signal })
      return key !== undefined && matches
    },
  }
}

/** What bcrypt reads of a password; undefined where nothing may match: a NUL ends it for some implementations, and not for others. */
function keyOf(password: Buffer, variant: BcryptRecipe['variant'], longPasswords: LongPasswords): Buffer | undefined {
  if (password.includes(0) || (longPasswords === 'refuse' && password.length > KEY_BYTES)) return undefined
  if (variant === '2x') return signExtendedKey(password)
  // Nothing is left for bcrypt to add or repeat.
  if (variant === '2') return password.length === 0 ? undefined : Buffer.alloc(KEY_BYTES, password)
  return password.subarray(0, KEY_BYTES)
}

/**
 * crypt_blowfish before 1.1 (2011) extended the sign of bytes above 127 when it put four of them together to a word, so that each filled
 * the bytes before it with ones (CVE-2011-2483). Systems that were upgraded marked those hashes `2x`. In ASCII they are as any.
 */
function signExtendedKey(password: Buffer): Buffer {
  const text = Buffer.concat([password, Buffer.from([0])])
  const key = Buffer.alloc(KEY_BYTES)
  for (let word = 0; word < KEY_BYTES; word += 4) {
    let value = 0
    for (let at = word; at < word + 4; at++) value = (value << 8) | text.readInt8(at % text.length)
    key.writeInt32BE(value, word)
  }
  return key
}

async function nativeEngine(native: NativeEngine | undefined): Promise<BcryptEngine> {
  if (native === undefined) throw new Error('native engine not built or disabled')
  return {
    name: NATIVE_NAME,
    hash: (password, setting, signal) => native.hash(password, bcryptSetting(setting), signal),
    verify: (password, stored, signal) => native.verify(password, stored, signal),
  }
}

async function nodeRsEngine(threads: Threads): Promise<BcryptEngine> {
  const { hash, verify } = await import('@node-rs/bcrypt')
  const hashV2: BcryptEngine['hash'] = (password, setting) => hash(password, { salt: bcryptSetting(setting) })
  // Version 1, which applications have, takes cost and salt apart.
  const hashV1: BcryptEngine['hash'] = (password, { cost, salt }) =>
    Reflect.apply(hash, undefined, [password, cost, decodeBcrypt(salt)])
  const isV2 = await makesHashes(hashV2)
  if (!isV2 && !(await makesHashes(hashV1))) throw new Error('it is of an unknown version')
  return {
    name: '@node-rs/bcrypt',
    hash: (password, setting) => threads.run(() => (isV2 ? hashV2 : hashV1)(password, setting)),
    verify: (password, stored) => threads.run(() => verify(password, stored)),
  }
}

async function makesHashes(hash: BcryptEngine['hash']): Promise<boolean> {
  try {
    return (await hash('', newBcryptSetting(LOWEST_COST))).startsWith('$2b$04$')
  } catch {
    return false
  }
}

async function nodeEngine(threads: Threads): Promise<BcryptEngine> {
  const { default: bcrypt } = await import('bcrypt')
  return {
    name: 'bcrypt',
    hash: (password, setting) => threads.run(() => bcrypt.hash(Buffer.from(password), bcryptSetting(setting))),
    verify: (password, stored) => threads.run(() => bcrypt.compare(Buffer.from(password), stored)),
  }
}

/** Test vectors of Openwall's crypt_blowfish. */
const knownAnswers: KnownAnswer[] = [
  { password: 'U*U', stored: '$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW' },
  { password: 'U*U*', stored: '$2a$05$CCCCCCCCCCCCCCCCCCCCC.VGOzA784oUp/Z0DY336zx7pLYAy0lwK' },
]
