/**
 * The package `bcrypt`, version 6, with its hashes made elsewhere: its functions, arguments,
 * outcomes and errors.
 */
import { timingSafeEqual } from 'node:crypto'
import { createRequire } from 'node:module'
import { type BcryptSetting, bcryptSetting, decodeBcrypt, newBcryptSetting } from '@spillway/queue/wire/setting'
import type { ExactPasswords } from '../application/create-passwords.js'
import { PasswordsError } from '../application/passwords-error.js'
import { type BcryptSalt, costOf, hashText, readHash, readPassword, readRounds, readSalt } from './bcrypt-text.js'
import type { Bcrypt, Minor } from './bcrypt-types.js'

const INVALID_SALT = 'Invalid salt. Salt must be in the form of: $Vers$log2(NumRounds)$saltvalue'
const HASH_TYPES = 'data must be a string or Buffer and salt must either be a salt string or a number of rounds'
const HASH_REQUIRED = 'data and salt arguments required'
const COMPARE_REQUIRED = 'data and hash arguments required'

/**
 * @param passwords gives what hashes, when the first call needs it; a call rejects with what this
 * throws
 */
export function createBcrypt(passwords: () => ExactPasswords | Promise<ExactPasswords>): Bcrypt {
  async function hashed(data: unknown, salt: unknown): Promise<string> {
    const { password, used } = readHashing(data, salt)
    const setting = bcryptSetting(used)
    const key = readPassword(password, used.minor).toString('base64')
    const made = await (await passwords()).hashExactly({ setting, password: key })
    return encoded(used, made.slice(setting.length))
  }

  async function matches(data: unknown, hash: unknown): Promise<boolean> {
    const { password, stored } = readComparing(data, hash, 'data and hash must be strings')
    if (stored === undefined) return false
    const setting = bcryptSetting(stored)
    const key = readPassword(password, stored.minor)
    const text = asText(key)
    if (text !== undefined && !text.includes('\0'))
      return await (await passwords()).verifyExactly(text, setting + stored.digest)
    const made = await (await passwords()).hashExactly({ setting, password: key.toString('base64') })
    return isSame(made.slice(setting.length), stored.digest)
  }

  function genSalt(rounds?: unknown, minor?: unknown): Promise<string>
  function genSalt(...given: unknown[]): void
  function genSalt(first?: unknown, second?: unknown, third?: unknown): Promise<string> | undefined {
    const given = [first, second, third]
    const at = given.slice(0, 2).findIndex(isFunction)
    const [rounds, minor] = at < 0 ? given : given.slice(0, at)
    return settle(
      Promise.resolve().then(() => newSalt(rounds, minor)),
      at < 0 ? given[2] : given[at],
    )
  }

  function hash(data: unknown, salt: unknown): Promise<string>
  function hash(data: unknown, salt: unknown, callback: unknown): void
  function hash(data: unknown, salt: unknown, callback?: unknown): Promise<string> | undefined {
    const misplaced = [data, salt].find(isFunction)
    if (misplaced !== undefined) return settle(Promise.reject<string>(new Error(HASH_TYPES)), misplaced)
    return isNoCallback(callback) ? refused() : settle(hashed(data, salt), callback)
  }

  function compare(data: unknown, stored: unknown): Promise<boolean>
  function compare(data: unknown, stored: unknown, callback: unknown): void
  function compare(data: unknown, stored: unknown, callback?: unknown): Promise<boolean> | undefined {
    const misplaced = [data, stored].find(isFunction)
    if (misplaced !== undefined) return settle(Promise.reject<boolean>(new Error(COMPARE_REQUIRED)), misplaced)
    return isNoCallback(callback) ? refused() : settle(matches(data, stored), callback)
  }

  return {
    genSaltSync: (rounds?: number, minor?: Minor) => newSalt(rounds, minor),
    genSalt,
    hashSync(data, salt) {
      const { password, used } = readHashing(data, salt)
      return encoded(used, digestInPlace(readPassword(password, used.minor), used))
    },
    hash,
    compareSync(data, hash) {
      const { password, stored } = readComparing(
        data,
        hash,
        'data must be a string or Buffer and hash must be a string',
      )
      if (stored === undefined) return false
      return isSame(digestInPlace(readPassword(password, stored.minor), stored), stored.digest)
    },
    compare,
    getRounds(hash) {
      if (hash == null) throw new Error('hash argument required')
      if (typeof hash !== 'string') throw new Error('hash must be a string')
      const rounds = readRounds(hash)
      if (rounds === 0) throw new Error('invalid hash provided')
      return rounds
    },
  }
}

function newSalt(rounds?: unknown, minor?: unknown): string {
  const wanted = rounds || 10
  if (typeof wanted !== 'number') throw new Error('rounds must be a number')
  const letter = minor || 'b'
  if (!isMinor(letter)) throw new Error('minor must be either "a" or "b"')
  return hashText({ ...newBcryptSetting(costOf(wanted)), minor: letter }, '')
}

function readHashing(data: unknown, salt: unknown): { password: Buffer; used: BcryptSalt } {
  if (data == null || salt == null) throw new Error(HASH_REQUIRED)
  if (!isData(data) || !(typeof salt === 'string' || typeof salt === 'number')) throw new Error(HASH_TYPES)
  const used = readSalt(typeof salt === 'number' ? newSalt(salt) : salt)
  if (used === undefined) throw new Error(INVALID_SALT)
  return { password: Buffer.from(data), used }
}

function readComparing(data: unknown, hash: unknown, types: string) {
  if (data == null || hash == null) throw new Error(COMPARE_REQUIRED)
  if (!isData(data) || typeof hash !== 'string') throw new Error(types)
  return { password: Buffer.from(data), stored: readHash(hash) }
}

/** The text of a hash. Throws for one that would not be read as a hash. */
function encoded(salt: BcryptSalt, digest: string): string {
  const text = hashText(salt, digest)
  if (readHash(text)?.digest === digest) return text
  throw new PasswordsError('hashing_failed', 'no password would match the hash that was made')
}

/** Of digests, which have one length. */
function isSame(one: string, other: string): boolean {
  return timingSafeEqual(Buffer.from(one), Buffer.from(other))
}

function isData(data: unknown): data is string | Buffer {
  return typeof data === 'string' || data instanceof Buffer
}

function isMinor(letter: unknown): letter is Minor {
  return letter === 'a' || letter === 'b'
}

function isFunction(value: unknown): boolean {
  return typeof value === 'function'
}

function isNoCallback(callback: unknown): boolean {
  return Boolean(callback) && !isFunction(callback)
}

function refused(): Promise<never> {
  return Promise.reject(new Error('cb must be a function or null to return a Promise'))
}

/**
 * Bytes as the text that requests carry; undefined for bytes that are not UTF-8: as text they would
 * change.
 */
export function asText(bytes: Buffer): string | undefined {
  const text = bytes.toString('utf8')
  return Buffer.from(text).equals(bytes) ? text : undefined
}

/**
 * Without a callback the promise itself. A callback runs in a turn of its own, so that its
 * exceptions are not rejections. It gets the error alone, or `noError` and the value.
 */
export function settle<T>(work: Promise<T>, callback: unknown, noError?: null): Promise<T> | undefined {
  if (typeof callback !== 'function') return work
  work.then(
    (value) => process.nextTick(() => Reflect.apply(callback, undefined, [noError, value])),
    (error: unknown) => process.nextTick(() => Reflect.apply(callback, undefined, [error])),
  )
  return undefined
}

// bcrypt in this process, for functions that return the hash: nothing else can keep their promise.
// Loads the code when it is used.

/** Version 1 of @node-rs/bcrypt. */
interface Implementation {
  hashSync(password: Uint8Array, cost: number, salt: Uint8Array): string
}

let hasWarned = false

/** The digest of what is read of a password. */
export function digestInPlace(password: Buffer, setting: BcryptSetting): string {
  return hashingHere<Implementation>('@node-rs/bcrypt')
    .hashSync(password, setting.cost, decodeBcrypt(setting.salt))
    .slice(bcryptSetting(setting).length)
}

/** A package that hashes on the event loop of this process. Warns once. */
export function hashingHere<Package>(name: '@node-rs/bcrypt' | '@node-rs/argon2'): Package {
  if (!hasWarned) {
    hasWarned = true
    const message = 'hashSync and compareSync hash on the event loop of this process: use hash and compare'
    process.emitWarning(message, { type: 'SpillwayWarning', code: 'SPILLWAY_SYNC' })
  }
  try {
    return createRequire(import.meta.url)(name)
  } catch (cause) {
    const message = `install ${name}, an optional dependency of @spillway/client, for hashSync and compareSync`
    throw new PasswordsError('not_installed', message, { cause })
  }
}
