/** bcrypt, in the modular crypt format. New hashes are `2b`. */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import {
  type BcryptSetting,
  bcryptSetting,
  type ExactHash,
  encodeBcrypt,
  newBcryptSetting,
} from '@spillway/queue/wire/setting'
import { Engines, type HashEngine, type KnownAnswer, nativeEngine } from './engine.js'
import type { BcryptRecipe, Method, Password } from './methods/recipe.js'
import type { NativeEngine } from './native.js'
import type { Threads } from './threads.js'

/** The lowest possible cost, and the highest accepted: one bad row must not exhaust a worker. */
const LOWEST_COST = 4
const COST_LIMIT = 17
const DIGEST_BYTES = 23
/** The key schedule reads this many bytes: the password with its NUL, repeatedly. */
const KEY_BYTES = 72

/** Longer passwords are verified by 72 bytes, as nearly all makers do, or never match. */
export type LongPasswords = 'cut' | 'refuse'

/** Reads 72 bytes of a password; a NUL is a byte like any other. */
type BcryptEngine = HashEngine<BcryptSetting>

export interface BcryptOptions {
  native?: NativeEngine | undefined
  longPasswords?: LongPasswords | undefined
}

export class Bcrypt implements Method<BcryptRecipe> {
  readonly family = 'bcrypt'
  readonly engine: string
  readonly #engines: Engines<BcryptEngine>
  readonly #longPasswords: LongPasswords

  private constructor(engines: Engines<BcryptEngine>, longPasswords: LongPasswords) {
    this.engine = engines.first.name
    this.#engines = engines
    this.#longPasswords = longPasswords
  }

  static async load(threads: Threads, { native, longPasswords = 'cut' }: BcryptOptions = {}): Promise<Bcrypt> {
    const candidates = [
      native && (async () => nativeEngine(native, bcryptSetting)),
      () => nodeRsEngine(threads),
      () => nodeEngine(threads),
    ]
    return new Bcrypt(await Engines.load(candidates, knownAnswers), longPasswords)
  }

  isAffordable(cost: number): boolean {
    return cost >= LOWEST_COST && cost <= COST_LIMIT
  }

  hash(password: string, cost: number, signal?: AbortSignal): Promise<string> {
    return this.#engines.first.hash(password, newBcryptSetting(cost), signal)
  }

  /** Undefined for a setting that costs too much. */
  async hashExactly(exact: ExactHash, setting: BcryptSetting, signal?: AbortSignal): Promise<string | undefined> {
    if (!this.isAffordable(setting.cost)) return undefined
    return await this.#engines.first.hash(Buffer.from(exact.password, 'base64'), setting, signal)
  }

  /** A recipe that takes as long as any other, and that no known password matches. */
  dummy(cost: number): BcryptRecipe {
    const { salt } = newBcryptSetting(cost)
    return { method: 'bcrypt', variant: '2b', cost, salt, digest: encodeBcrypt(randomBytes(DIGEST_BYTES)) }
  }

  async verify(password: Password, recipe: BcryptRecipe, signal?: AbortSignal): Promise<boolean> {
    const { variant, cost, salt, digest } = recipe
    const key = keyOf(Buffer.from(password), variant, this.#longPasswords)
    const setting: BcryptSetting = { algorithm: 'bcrypt', cost, salt }
    // A key of this variant is read whole, whatever its bytes are.
    if (variant === '2x' && key !== undefined) {
      const made = await this.#engines.first.hash(key, setting, signal)
      return timingSafeEqual(Buffer.from(made.slice(-digest.length)), Buffer.from(digest))
    }
    const matches = await this.#engines.verify(key ?? '', bcryptSetting(setting) + digest, signal)
    return key !== undefined && matches
  }
}

/** The bytes that bcrypt reads; undefined if nothing may match: a NUL may end a password. */
function keyOf(password: Buffer, variant: BcryptRecipe['variant'], longPasswords: LongPasswords): Buffer | undefined {
  if (password.includes(0) || (longPasswords === 'refuse' && password.length > KEY_BYTES)) return undefined
  if (variant === '2x') return signExtendedKey(password)
  // Nothing is left for bcrypt to add or repeat.
  if (variant === '2') return password.length === 0 ? undefined : Buffer.alloc(KEY_BYTES, password)
  return password.subarray(0, KEY_BYTES)
}

/**
 * crypt_blowfish before 1.1 extended the sign of bytes above 127: each filled the bytes before it
 * in a word with ones (CVE-2011-2483). Upgraded systems marked those hashes `2x`.
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

async function nodeRsEngine(threads: Threads): Promise<BcryptEngine> {
  const { hash, verify } = await import('@node-rs/bcrypt')
  return {
    name: '@node-rs/bcrypt',
    hash: (password, setting) => threads.run(() => hash(password, { salt: bcryptSetting(setting) })),
    verify: (password, stored) => threads.run(() => verify(password, stored)),
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
