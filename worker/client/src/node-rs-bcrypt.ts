/**
 * `@spillway/client/node-rs-bcrypt`: a drop-in replacement of the package `@node-rs/bcrypt`,
 * version 1, set up by the environment. What ends with Sync hashes in this process, on its event
 * loop, and warns once.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import { bcryptSetting, decodeBcrypt, encodeBcrypt } from '@spillway/queue/wire/setting'
import { parseBcrypt } from '@spillway/queue/wire/stored-hash'
import { failure, hashingHere, unless } from './drop-in/shared.js'
import { close as closeShared, sharedPasswords } from './shared-passwords.js'

type Bytes = Uint8Array | string
type Left = AbortSignal | null | undefined

/** Rejects what waits with `closed`, and ends the process beside or disconnects. */
export const close: () => Promise<void> = closeShared

type Version = '2a' | '2x' | '2y' | '2b'

export const DEFAULT_COST: number = 12
const SALT_BYTES = 16
const READ_BYTES = 72

const here = () =>
  hashingHere<Pick<typeof bcrypt, 'genSalt' | 'genSaltSync' | 'hashSync' | 'verifySync' | 'compareSync'>>(
    '@node-rs/bcrypt',
  )

export async function genSalt(round: number, version?: Version, _signal?: Left): Promise<string> {
  return here().genSalt(round, version)
}

export function genSaltSync(round: number, version?: Version): string {
  return here().genSaltSync(round, version)
}

export function hash(input: Bytes, cost?: number | null, salt?: Bytes | null, signal?: Left): Promise<string> {
  return unless(signal, hashed(input, cost, salt))
}

export function hashSync(input: Bytes, cost?: number | null, salt?: Bytes | null): string {
  return here().hashSync(input, cost, salt)
}

export function verify(password: Bytes, hash: Bytes, signal?: Left): Promise<boolean> {
  return unless(signal, matches(password, hash))
}

export function verifySync(password: Bytes, hash: Bytes): boolean {
  return here().verifySync(password, hash)
}

export function compare(password: Bytes, hash: Bytes, signal?: Left): Promise<boolean> {
  return unless(signal, matches(password, hash))
}

export function compareSync(password: Bytes, hash: Bytes): boolean {
  return here().compareSync(password, hash)
}

const bcrypt = { DEFAULT_COST, genSalt, genSaltSync, hash, hashSync, verify, verifySync, compare, compareSync, close }
export default bcrypt

async function digestOf(input: Bytes, cost: number, salt: Uint8Array): Promise<[string, string]> {
  const setting = bcryptSetting({ algorithm: 'bcrypt', cost, salt: encodeBcrypt(salt) })
  const password = Buffer.from(input).subarray(0, READ_BYTES).toString('base64')
  const made = await (await sharedPasswords()).hashExactly({ setting, password })
  return [setting, made.slice(setting.length)]
}

async function hashed(input: Bytes, cost?: number | null, given?: Bytes | null): Promise<string> {
  const rounds = (cost ?? DEFAULT_COST) >>> 0
  if (rounds < 4 || rounds > 31) throw failure('GenericFailure', `Cost needs to be between 4 and 31, got ${rounds}`)
  const salt = Buffer.alloc(SALT_BYTES)
  salt.set(Buffer.from(given ?? randomBytes(SALT_BYTES)).subarray(0, SALT_BYTES))
  return (await digestOf(input, rounds, salt)).join('')
}

async function matches(password: Bytes, stored: Bytes): Promise<boolean> {
  const { version = '2', cost = 0, salt = '', digest = '' } = parseBcrypt(Buffer.from(stored).toString()) ?? {}
  if (version === '2' || !/[.Oeu]$/.test(salt) || digest === '' || cost < 4 || cost > 31) return false
  const [, made] = await digestOf(password, cost, decodeBcrypt(salt).subarray(0, SALT_BYTES))
  return timingSafeEqual(Buffer.from(made), Buffer.from(digest))
}
