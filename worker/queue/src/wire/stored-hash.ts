/** Stored hashes as text: their algorithm and cost, and how these compare with a policy. */
import { hash } from 'node:crypto'
import type { Argon2Cost, HashPolicy } from './policy.js'

/** Replaces the hash of an account that was imported without a hash that can be verified. */
export const NO_PASSWORD = '$none$'

export type StoredHash = Argon2Hash | { algorithm: 'bcrypt'; cost: number }

export interface Argon2Setting extends Argon2Cost {
  algorithm: 'argon2d' | 'argon2i' | 'argon2id'
  version: number
  salt: Buffer
}

export interface Argon2Hash extends Argon2Setting {
  digest: Buffer
  /** An input of the hash, in addition to password and salt. */
  associatedData?: Buffer
}

/** Parses argon2's PHC strings and bcrypt's modular crypt format; undefined for other texts. */
export function parseStoredHash(text: string): StoredHash | undefined {
  const { version, cost = 0, digest = '' } = parseBcrypt(text) ?? {}
  if (version === undefined) return parseArgon2(text)
  return /^2[aby]$/.test(version) && digest !== '' ? { algorithm: 'bcrypt', cost } : undefined
}

const BCRYPT = /^\$(2[abxy]?)\$(\d{2})\$([./A-Za-z0-9]{22})([./A-Za-z0-9]{31})?$/

/** The parts of a bcrypt hash, as written; a setting has no digest. Undefined for other texts. */
export function parseBcrypt(text: string): { version: string; cost: number; salt: string; digest: string } | undefined {
  const [, version, cost, salt = '', digest = ''] = BCRYPT.exec(text) ?? []
  return version === undefined ? undefined : { version, cost: Number(cost), salt, digest }
}

const ARGON2 = /^\$(argon2id|argon2i|argon2d)\$(?:v=(16|19)\$)?([a-z]+=[^$]+)\$([A-Za-z0-9+/]+=*)\$([A-Za-z0-9+/]+=*)$/
/** The version of old argon2 hashes, which name no version. */
const FIRST_VERSION = 16
/** RFC 9106, 3.1. */
const SALT_MIN_BYTES = 8
const DIGEST_MIN_BYTES = 4

/**
 * Parses a stored hash of argon2, whatever its cost: parameters in any order (the package argon2
 * writes `m,p,t`), without a version, with `data`, with padded base64. Undefined for other texts.
 */
export function parseArgon2(text: string): Argon2Hash | undefined {
  const [, algorithm, version = FIRST_VERSION, parameters = '', saltText = '', digestText = ''] =
    ARGON2.exec(text) ?? []
  if (algorithm !== 'argon2id' && algorithm !== 'argon2i' && algorithm !== 'argon2d') return undefined
  const cost = argon2Parameters(parameters)
  const [salt, digest] = decodeBase64Pair(saltText, digestText) ?? []
  if (cost === undefined || salt === undefined || digest === undefined) return undefined
  if (salt.length < SALT_MIN_BYTES || digest.length < DIGEST_MIN_BYTES) return undefined
  return { algorithm, version: Number(version), ...cost, salt, digest }
}

function argon2Parameters(text: string): (Argon2Cost & { associatedData?: Buffer }) | undefined {
  const values = new Map<string, string>()
  for (const parameter of text.split(',')) {
    const [, name = '', value = ''] = /^(m|t|p|data)=(.+)$/.exec(parameter) ?? []
    if (name === '' || values.has(name)) return undefined
    values.set(name, value)
  }
  const number = (name: string) => (/^[1-9]\d*$/.test(values.get(name) ?? '') ? Number(values.get(name)) : undefined)
  const [memoryKib, time, parallelism] = [number('m'), number('t'), number('p')]
  if (memoryKib === undefined || time === undefined || parallelism === undefined) return undefined
  const data = values.get('data')
  if (data === undefined) return { memoryKib, time, parallelism }
  const associatedData = decodeBase64(data)
  return associatedData && { memoryKib, time, parallelism, associatedData }
}

/**
 * Whether a stored hash is weaker than the policy. bcrypt and older variants of argon2 are weaker
 * than argon2id; argon2 is not weaker than bcrypt. A text of an unknown format is below any policy.
 */
export function isBelow(storedHash: string, policy: HashPolicy): boolean {
  const stored = parseStoredHash(storedHash)
  if (stored === undefined) return true
  if (policy.algorithm === 'bcrypt') return stored.algorithm === 'bcrypt' && stored.cost < policy.cost
  if (stored.algorithm !== 'argon2id' || stored.version !== 19 || stored.associatedData !== undefined) return true
  return stored.memoryKib < policy.memoryKib || stored.time < policy.time
}

/** When a matching hash is replaced: if it is not of the policy, if it is weaker, or never. */
export const rehashModes = ['always', 'weaker', 'never'] as const
export type RehashMode = (typeof rehashModes)[number]

export function isDue(storedHash: string, policy: HashPolicy, mode: RehashMode): boolean {
  if (mode === 'never') return false
  return mode === 'always' ? !isOf(storedHash, policy) : isBelow(storedHash, policy)
}

/** Whether a hash was made with the algorithm and cost of the policy, and no others. */
export function isOf(hash: string, policy: HashPolicy): boolean {
  const made = parseStoredHash(hash)
  if (made?.algorithm !== policy.algorithm) return false
  if (policy.algorithm === 'bcrypt') return made.algorithm === 'bcrypt' && made.cost === policy.cost
  if (made.algorithm === 'bcrypt' || made.associatedData !== undefined) return false
  const { memoryKib, time, parallelism } = policy
  return made.version === 19 && made.memoryKib === memoryKib && made.time === time && made.parallelism === parallelism
}

/** Algorithm and cost for people: `argon2id, m=19456,t=2,p=1`; of other formats, the identifier. */
export function describeHash(storedHash: string): string {
  if (storedHash === NO_PASSWORD) return 'no password: begins with a reset mail'
  const stored = parseStoredHash(storedHash)
  if (stored === undefined) return /^\$([\w-]{1,32})\$/.exec(storedHash)?.[1] ?? 'another format'
  if (stored.algorithm === 'bcrypt') return `bcrypt, cost ${stored.cost}`
  return `${stored.algorithm}, m=${stored.memoryKib},t=${stored.time},p=${stored.parallelism}`
}

/** Identifies a stored hash without revealing it: SHA-256 in base64. */
export function storedHashDigest(storedHash: string): string {
  return hash('sha256', storedHash, 'base64')
}

/** The unpadded base64 of PHC strings. */
export function unpadded(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64').replace(/=+$/, '')
}

/** Bytes of base64, padded or not; undefined for a text that no encoder writes. */
export function decodeBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64')
  return text === unpadded(bytes) || text === bytes.toString('base64') ? bytes : undefined
}

/** Two parts of one text: both are padded where needed, or neither is. */
export function decodeBase64Pair(one: string, other: string): [Buffer, Buffer] | undefined {
  const bytes: [Buffer, Buffer] = [Buffer.from(one, 'base64'), Buffer.from(other, 'base64')]
  const isWritten = (encode: (bytes: Buffer) => string) => encode(bytes[0]) === one && encode(bytes[1]) === other
  return isWritten(unpadded) || isWritten((part) => part.toString('base64')) ? bytes : undefined
}
