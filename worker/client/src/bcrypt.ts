/**
 * `@spillway/client/bcrypt`: a drop-in replacement of the package `bcrypt`, version 6, configured
 * by the environment. Its hashes are made elsewhere; callers see no difference.
 */
import { timingSafeEqual } from 'node:crypto'
import {
  type BcryptSetting,
  bcryptSetting,
  decodeBcrypt,
  encodeBcrypt,
  newBcryptSetting,
} from '@spillway/queue/wire/setting'
import { parseBcrypt } from '@spillway/queue/wire/stored-hash'
import { PasswordsError } from './application/passwords-error.js'
import { asText, digestInPlace, settle } from './drop-in/shared.js'
import { close as closeShared, sharedPasswords } from './shared-passwords.js'

/** Rejects waiting calls with `closed`, and ends the process beside or disconnects. */
export const close: () => Promise<void> = closeShared

type Minor = 'a' | 'b'

const INVALID_SALT = 'Invalid salt. Salt must be in the form of: $Vers$log2(NumRounds)$saltvalue'
const HASH_TYPES = 'data must be a string or Buffer and salt must either be a salt string or a number of rounds'
const HASH_REQUIRED = 'data and salt arguments required'
const COMPARE_REQUIRED = 'data and hash arguments required'

/** A salt to hash with: a cost [10] from 4 to 31, and random bytes. Hashes nothing. */
export function genSaltSync(rounds?: number, minor?: Minor): string {
  return newSalt(rounds, minor)
}

/** A salt to hash with: a cost [10] from 4 to 31, and random bytes. Hashes nothing. */
export function genSalt(rounds?: number, minor?: Minor): Promise<string>
export function genSalt(callback: (err: Error | undefined, salt: string) => unknown): void
export function genSalt(rounds: number, callback: (err: Error | undefined, salt: string) => unknown): void
export function genSalt(rounds: number, minor: Minor, callback: (err: Error | undefined, salt: string) => unknown): void
export function genSalt(first?: unknown, second?: unknown, third?: unknown): Promise<string> | undefined {
  const given = [first, second, third]
  const at = given.slice(0, 2).findIndex(isFunction)
  const [rounds, minor] = at < 0 ? given : given.slice(0, at)
  return settle(
    Promise.resolve().then(() => newSalt(rounds, minor)),
    at < 0 ? given[2] : given[at],
  )
}

/** Hashes in this process, on its event loop, and warns once. */
export function hashSync(data: string | Buffer, saltOrRounds: string | number): string {
  const { password, used } = readHashing(data, saltOrRounds)
  return encoded(used, digestInPlace(readPassword(password, used.minor), used))
}

/** A new hash, with a given salt or one made for these rounds. Reads 72 bytes of the data. */
export function hash(data: string | Buffer, saltOrRounds: string | number): Promise<string>
export function hash(
  data: string | Buffer,
  saltOrRounds: string | number,
  callback: (err: Error | undefined, encrypted: string) => unknown,
): void
export function hash(data: unknown, salt: unknown, callback?: unknown): Promise<string> | undefined {
  const misplaced = [data, salt].find(isFunction)
  if (misplaced !== undefined) return settle(Promise.reject<string>(new Error(HASH_TYPES)), misplaced)
  return isNoCallback(callback) ? refused() : settle(hashed(data, salt), callback)
}

/** Hashes in this process, on its event loop, and warns once. */
export function compareSync(data: string | Buffer, encrypted: string): boolean {
  const { password, stored } = readComparing(
    data,
    encrypted,
    'data must be a string or Buffer and hash must be a string',
  )
  if (stored === undefined) return false
  return isSame(digestInPlace(readPassword(password, stored.minor), stored), stored.digest)
}

/** Whether data matches a hash: 2a or 2b. Only 72 bytes of the data are read. */
export function compare(data: string | Buffer, encrypted: string): Promise<boolean>
export function compare(
  data: string | Buffer,
  encrypted: string,
  callback: (err: Error | undefined, same: boolean) => unknown,
): void
export function compare(data: unknown, stored: unknown, callback?: unknown): Promise<boolean> | undefined {
  const misplaced = [data, stored].find(isFunction)
  if (misplaced !== undefined) return settle(Promise.reject<boolean>(new Error(COMPARE_REQUIRED)), misplaced)
  return isNoCallback(callback) ? refused() : settle(matches(data, stored), callback)
}

export function getRounds(encrypted: string): number {
  if (encrypted == null) throw new Error('hash argument required')
  if (typeof encrypted !== 'string') throw new Error('hash must be a string')
  const rounds = readRounds(encrypted)
  if (rounds === 0) throw new Error('invalid hash provided')
  return rounds
}

async function hashed(data: unknown, salt: unknown): Promise<string> {
  const { password, used } = readHashing(data, salt)
  const setting = bcryptSetting(used)
  const key = readPassword(password, used.minor).toString('base64')
  const made = await (await sharedPasswords()).hashExactly({ setting, password: key })
  return encoded(used, made.slice(setting.length))
}

async function matches(data: unknown, hash: unknown): Promise<boolean> {
  const { password, stored } = readComparing(data, hash, 'data and hash must be strings')
  if (stored === undefined) return false
  const setting = bcryptSetting(stored)
  const key = readPassword(password, stored.minor)
  const text = asText(key)
  const passwords = await sharedPasswords()
  if (text !== undefined && !text.includes('\0')) return await passwords.verifyExactly(text, setting + stored.digest)
  const made = await passwords.hashExactly({ setting, password: key.toString('base64') })
  return isSame(made.slice(setting.length), stored.digest)
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

/** The text of a hash. Throws for a text that would not be read as a hash. */
function encoded(salt: BcryptSalt, digest: string): string {
  const text = hashText(salt, digest)
  if (readHash(text)?.digest === digest) return text
  throw new PasswordsError('hashing_failed', 'no password would match the hash that was made')
}

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

// Salts, hashes and passwords as all implementations of bcrypt read them.

/** The letter after the 2. Without a letter, no NUL ends the password. */
type Letter = Minor | ''

interface BcryptSalt extends BcryptSetting {
  minor: Letter
}

const SALT_CHARACTERS = 22
const READ_BYTES = 72

/** Its C code does not look at all characters before the salt, and reads 22 of what follows. */
const SALT = /^\$[ -2](?:\$|([ab]).)(.{2})\$([./A-Za-z0-9]{22})/s

function readSalt(text: string): BcryptSalt | undefined {
  const [, minor, digits = '', salt = ''] = SALT.exec(asC(text)) ?? []
  const cost = atoi(digits)
  if (salt === '' || cost < 4 || cost > 31) return undefined
  return { algorithm: 'bcrypt', minor: minorOf(minor), cost, salt: canonical(salt) }
}

/** Undefined for a text that the package would write differently: no password matches it. */
function readHash(text: string): (BcryptSalt & { digest: string }) | undefined {
  const stored = asC(text)
  const { version = '', digest = '' } = parseBcrypt(stored) ?? {}
  const salt = digest === '' ? undefined : readSalt(stored)
  if (salt === undefined || encodeBcrypt(decodeBcrypt(digest)) !== digest) return undefined
  const read = { ...salt, minor: minorOf(version.slice(1)), digest }
  return hashText(read, digest) === stored ? read : undefined
}

function hashText(salt: BcryptSalt, digest: string): string {
  return bcryptSetting(salt).replace('$2b', `$2${salt.minor}`) + digest
}

/** What the package reads of a password, as every implementation of `2b` reads it. */
function readPassword(password: Buffer, minor: Letter): Buffer {
  if (minor === 'b') return password.subarray(0, READ_BYTES)
  // The length wraps around at 256, as in OpenBSD until 2014, and the remaining bytes are read
  // repeatedly.
  const length = (password.length + (minor === 'a' ? 1 : 0)) & 0xff
  if (minor === 'a' && length === password.length + 1) return password.subarray(0, READ_BYTES)
  const read = Buffer.concat([password, Buffer.of(0)]).subarray(0, Math.max(length, 1))
  return Buffer.alloc(READ_BYTES, read)
}

/** Rounds as the package reads them out of a hash; 0 for any other text. */
function readRounds(text: string): number {
  const [, rest = ''] = /^\$[^\0][^$\0]?\$(.*)$/s.exec(asC(text)) ?? []
  return atoi(rest) >>> 0
}

/** A number of rounds as the package takes it: a byte, from 4 to 31. */
function costOf(rounds: number): number {
  return Math.min(Math.max((rounds | 0) & 0xff, 4), 31)
}

/** The bytes of a text up to a NUL, each as a character. */
function asC(text: string): string {
  return Buffer.from(text).toString('latin1').replace(/\0.*$/s, '')
}

function atoi(text: string): number {
  return Number(/^[ \t\n\v\f\r]*([+-]?\d+)/.exec(text)?.[1] ?? 0)
}

/** The salt without the unused bits of its last character. */
function canonical(salt: string): string {
  return encodeBcrypt(decodeBcrypt(salt).subarray(0, 16)).slice(0, SALT_CHARACTERS)
}

function minorOf(letter: string | undefined): Letter {
  return letter === 'a' || letter === 'b' ? letter : ''
}
