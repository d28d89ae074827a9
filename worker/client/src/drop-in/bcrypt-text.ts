/** Salts, hashes and passwords of the package `bcrypt`, as all implementations read them. */
import { type BcryptSetting, bcryptSetting, decodeBcrypt, encodeBcrypt } from '@spillway/queue/wire/setting'
import { parseBcrypt } from '@spillway/queue/wire/stored-hash'

/** The letter behind the 2. Without one the password ends without a NUL. */
type Minor = 'a' | 'b' | ''

export interface BcryptSalt extends BcryptSetting {
  minor: Minor
}

const SALT_CHARACTERS = 22
const READ_BYTES = 72

/** Its C code does not look at all characters before the salt, and reads 22 of what follows. */
const SALT = /^\$[ -2](?:\$|([ab]).)(.{2})\$([./A-Za-z0-9]{22})/s

/** Reads a salt; undefined for any other value. */
export function readSalt(text: string): BcryptSalt | undefined {
  const [, minor, digits = '', salt = ''] = SALT.exec(asC(text)) ?? []
  const cost = atoi(digits)
  if (salt === '' || cost < 4 || cost > 31) return undefined
  return { algorithm: 'bcrypt', minor: minorOf(minor), cost, salt: canonical(salt) }
}

/** Undefined for a text that the package would write differently: no password matches it. */
export function readHash(text: string): (BcryptSalt & { digest: string }) | undefined {
  const stored = asC(text)
  const { version = '', digest = '' } = parseBcrypt(stored) ?? {}
  const salt = digest === '' ? undefined : readSalt(stored)
  if (salt === undefined || encodeBcrypt(decodeBcrypt(digest)) !== digest) return undefined
  const read = { ...salt, minor: minorOf(version.slice(1)), digest }
  return hashText(read, digest) === stored ? read : undefined
}

export function hashText(salt: BcryptSalt, digest: string): string {
  return bcryptSetting(salt).replace('$2b', `$2${salt.minor}`) + digest
}

/** What the package reads of a password, as every implementation of `2b` reads it. */
export function readPassword(password: Buffer, minor: Minor): Buffer {
  if (minor === 'b') return password.subarray(0, READ_BYTES)
  // The length wraps around at 256, as in OpenBSD until 2014, and what is left is read over and
  // over.
  const length = (password.length + (minor === 'a' ? 1 : 0)) & 0xff
  if (minor === 'a' && length === password.length + 1) return password.subarray(0, READ_BYTES)
  const read = Buffer.concat([password, Buffer.of(0)]).subarray(0, Math.max(length, 1))
  return Buffer.alloc(READ_BYTES, read)
}

/** Rounds as the package reads them out of a hash; 0 for any other text. */
export function readRounds(text: string): number {
  const [, rest = ''] = /^\$[^\0][^$\0]?\$(.*)$/s.exec(asC(text)) ?? []
  return atoi(rest) >>> 0
}

/** A number of rounds as the package takes it: a byte, from 4 to 31. */
export function costOf(rounds: number): number {
  return Math.min(Math.max((rounds | 0) & 0xff, 4), 31)
}

/** The bytes of a text up to a NUL, each as a character. */
function asC(text: string): string {
  return Buffer.from(text).toString('latin1').replace(/\0.*$/s, '')
}

function atoi(text: string): number {
  return Number(/^[ \t\n\v\f\r]*([+-]?\d+)/.exec(text)?.[1] ?? 0)
}

/** Without the bits of its last character that mean nothing. */
function canonical(salt: string): string {
  return encodeBcrypt(decodeBcrypt(salt).subarray(0, 16)).slice(0, SALT_CHARACTERS)
}

function minorOf(letter: string | undefined): Minor {
  return letter === 'a' || letter === 'b' ? letter : ''
}
