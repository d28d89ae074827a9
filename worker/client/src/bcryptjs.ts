/**
 * `@spillway/client/bcryptjs`: a drop-in replacement of the package `bcryptjs`, version 3,
 * configured by the environment. Its hashes are made elsewhere; callers see no difference.
 */
import { bcryptSetting, decodeBcrypt, encodeBcrypt, newBcryptSetting } from '@spillway/queue/wire/setting'
import { digestInPlace, settle } from './drop-in/shared.js'
import { close as closeShared, sharedPasswords } from './shared-passwords.js'

/** Rejects waiting calls with `closed`, and ends the process beside or disconnects. */
export const close: () => Promise<void> = closeShared

type Callback<T> = (err: Error | null, result?: T) => void
/** The package calls it while it hashes; here it is called once, at the end. */
type ProgressCallback = (percentage: number) => void

const READ_BYTES = 72
const SALT_BYTES = 16
const DIGEST_CHARACTERS = 31
const HASH_CHARACTERS = 60

/** The fallback is not called: Node has random bytes. */
export function setRandomFallback(_random: (length: number) => number[]): void {}

export function genSaltSync(rounds?: number, _seedLength?: number): string {
  return newSalt(rounds)
}

export function genSalt(rounds?: number): Promise<string>
export function genSalt(callback: Callback<string>): void
export function genSalt(rounds: number, callback: Callback<string>): void
export function genSalt(first?: unknown, second?: unknown, third?: unknown): Promise<string> | undefined {
  const given = [first, second, third]
  const at = given.slice(0, 2).findIndex((value) => typeof value === 'function')
  const [rounds] = at === 0 ? [] : given
  if (rounds !== undefined && typeof rounds !== 'number') throw new Error(`illegal arguments: ${typeof rounds}`)
  return settled(async () => newSalt(rounds), at < 0 ? given[2] : given[at])
}

/** Hashes in this process, on its event loop, and warns once. */
export function hashSync(password: string, salt?: number | string): string {
  const { cost, salt: used, prefix, key } = readHashing(password, salt === undefined ? 10 : salt)
  return prefix + digestInPlace(key, { algorithm: 'bcrypt', cost, salt: used })
}

export function hash(password: string, salt: number | string): Promise<string>
export function hash(
  password: string,
  salt: number | string,
  callback?: Callback<string>,
  progress?: ProgressCallback,
): void
export function hash(
  password: unknown,
  salt: unknown,
  callback?: unknown,
  progress?: unknown,
): Promise<string> | undefined {
  return settled(() => hashed(password, salt), callback, progress)
}

/** Hashes in this process, on its event loop, and warns once. */
export function compareSync(password: string, hash: string): boolean {
  if (typeof password !== 'string' || typeof hash !== 'string') throw illegal(password, hash)
  return hash.length === HASH_CHARACTERS && hashSync(password, hash.slice(0, -DIGEST_CHARACTERS)) === hash
}

export function compare(password: string, hash: string): Promise<boolean>
export function compare(password: string, hash: string, callback?: Callback<boolean>, progress?: ProgressCallback): void
export function compare(
  password: unknown,
  stored: unknown,
  callback?: unknown,
  progress?: unknown,
): Promise<boolean> | undefined {
  return settled(() => matches(password, stored), callback, progress)
}

export function getRounds(hash: string): number {
  if (typeof hash !== 'string') throw new Error(`Illegal arguments: ${typeof hash}`)
  return Number.parseInt(hash.split('$')[2] ?? '', 10)
}

export function getSalt(hash: string): string {
  if (typeof hash !== 'string') throw new Error(`Illegal arguments: ${typeof hash}`)
  if (hash.length !== HASH_CHARACTERS) throw new Error(`Illegal hash length: ${hash.length} != 60`)
  return hash.slice(0, -DIGEST_CHARACTERS)
}

/** Whether a password is longer than the 72 bytes that are read. */
export function truncates(password: string): boolean {
  if (typeof password !== 'string') throw new Error(`Illegal arguments: ${typeof password}`)
  return Buffer.byteLength(password) > READ_BYTES
}

export function encodeBase64(bytes: Readonly<ArrayLike<number>>, length: number): string {
  if (length <= 0 || length > bytes.length) throw new Error(`Illegal len: ${length}`)
  return encodeBcrypt(Uint8Array.from(bytes).subarray(0, length))
}

export function decodeBase64(text: string, length: number): number[] {
  if (length <= 0) throw new Error(`Illegal len: ${length}`)
  return [...decodeBcrypt(text).subarray(0, length)]
}

async function hashed(password: unknown, given: unknown): Promise<string> {
  const { setting, prefix, key } = readHashing(password, given)
  const made = await (await sharedPasswords()).hashExactly({ setting, password: key.toString('base64') })
  return prefix + made.slice(-DIGEST_CHARACTERS)
}

async function matches(password: unknown, hash: unknown): Promise<boolean> {
  if (typeof password !== 'string' || typeof hash !== 'string') throw illegal(password, hash)
  return hash.length === HASH_CHARACTERS && (await hashed(password, hash.slice(0, -DIGEST_CHARACTERS))) === hash
}

function newSalt(rounds: unknown): string {
  const wanted = rounds || 10
  if (typeof wanted !== 'number') throw new Error(`Illegal arguments: ${typeof wanted}, undefined`)
  return bcryptSetting(newBcryptSetting(Math.min(Math.max(wanted, 4), 31)))
}

/** Key, setting as all implementations read it, and prefix as the package writes it. */
function readHashing(password: unknown, given: unknown) {
  const text = typeof given === 'number' ? newSalt(given) : given
  if (typeof password !== 'string' || typeof text !== 'string') throw illegal(password, given)
  return readSalt(password, text)
}

function readSalt(password: string, given: string) {
  if (!given.startsWith('$2')) throw new Error(`Invalid salt version: ${given.slice(0, 2)}`)
  const [, minor] = /^\$2([aby]?)\$/.exec(given) ?? []
  if (minor === undefined) throw new Error(`Invalid salt revision: ${given.slice(2, 4)}`)
  const rest = given.slice(3 + minor.length)
  if (rest.charAt(2) > '$') throw new Error('Missing salt rounds')
  const cost = Number.parseInt(rest.slice(0, 1), 10) * 10 + Number.parseInt(rest.slice(1, 2), 10)
  const bytes = decodeBcrypt(rest.slice(3, 25)).subarray(0, SALT_BYTES)
  if (!(cost >= 4 && cost <= 31)) throw new Error(`Illegal number of rounds (4-31): ${cost}`)
  if (bytes.length !== SALT_BYTES) throw new Error(`Illegal salt length: ${bytes.length} != 16`)
  const salt = encodeBcrypt(bytes)
  const setting = bcryptSetting({ algorithm: 'bcrypt', cost, salt })
  return { cost, salt, setting, prefix: setting.replace('$2b', `$2${minor}`), key: keyOf(password, minor) }
}

/** Without a letter, no NUL ends the password, and it is read repeatedly. */
function keyOf(password: string, minor: string): Buffer {
  const bytes = bytesOf(password)
  return minor === '' ? Buffer.alloc(READ_BYTES, bytes) : bytes.subarray(0, READ_BYTES)
}

/** UTF-8. The package also encodes lone surrogates, where Node writes U+FFFD. */
function bytesOf(text: string): Buffer {
  const parts = text.split(/(\p{Surrogate})/u)
  return Buffer.concat(parts.map((part, at) => (at % 2 === 0 ? Buffer.from(part) : surrogateBytes(part.charCodeAt(0)))))
}

function surrogateBytes(unit: number): Buffer {
  return Buffer.of(0xe0 | (unit >> 12), 0x80 | ((unit >> 6) & 0x3f), 0x80 | (unit & 0x3f))
}

/** Returns the promise if there is no callback; a callback is called in its own turn. */
function settled<T>(work: () => Promise<T>, callback: unknown, progress?: unknown): Promise<T> | undefined {
  if (callback && typeof callback !== 'function') throw new Error(`Illegal callback: ${typeof callback}`)
  const done = work().then((value) => {
    if (typeof progress === 'function') progress(1)
    return value
  })
  return settle(done, callback || undefined, null)
}

function illegal(one: unknown, other: unknown): Error {
  return new Error(`Illegal arguments: ${typeof one}, ${typeof other}`)
}
