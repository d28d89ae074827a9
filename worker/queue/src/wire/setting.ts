/**
 * Settings: all inputs of a hash, as callers of the packages bcrypt and argon2 may give them. As
 * text, a setting is a stored hash without its digest.
 */
import { randomBytes } from 'node:crypto'
import type { FromSchema } from 'json-schema-to-ts'
import { objectOf } from './object-schema.js'
import type { Argon2Cost } from './policy.js'
import { type Argon2Setting, parseArgon2, parseBcrypt, unpadded } from './stored-hash.js'

/** A part of the schema of a `hash` request. Bytes are base64. */
export const ExactHashSchema = objectOf(
  {
    setting: { type: 'string' },
    /** The password: any bytes. */
    password: { type: 'string' },
  },
  {
    /** For argon2, as the next two: the length of the digest [32]. */
    digestBytes: { type: 'integer' },
    secret: { type: 'string' },
    associatedData: { type: 'string' },
  },
)
export type ExactHash = FromSchema<typeof ExactHashSchema>

export type Setting = BcryptSetting | Argon2Setting

export interface BcryptSetting {
  algorithm: 'bcrypt'
  cost: number
  /** 22 characters of bcrypt's base64. */
  salt: string
}

/** A placeholder for the digest that a setting lacks. */
const ANY_DIGEST = 'AAAAAAAAAAA'

/** Parses a setting, the beginning of a hash; undefined for another text. Does not check costs. */
export function parseSetting(text: string): Setting | undefined {
  const { version, cost = 0, salt = '', digest } = parseBcrypt(text) ?? {}
  if (version === '2b' && digest === '' && /[.Oeu]$/.test(salt)) return { algorithm: 'bcrypt', cost, salt }
  const { digest: _, ...setting } = parseArgon2(`${text}$${ANY_DIGEST}`) ?? {}
  return 'salt' in setting && argon2Setting(setting) === text ? setting : undefined
}

const SALT_BYTES = 16

export function newBcryptSetting(cost: number): BcryptSetting {
  return { algorithm: 'bcrypt', cost, salt: encodeBcrypt(randomBytes(SALT_BYTES)) }
}

export function newArgon2Setting(cost: Argon2Cost): Argon2Setting {
  return { algorithm: 'argon2id', version: 19, ...cost, salt: randomBytes(SALT_BYTES) }
}

export function bcryptSetting({ cost, salt }: BcryptSetting): string {
  return `$2b$${String(cost).padStart(2, '0')}$${salt}`
}

export function argon2Setting(setting: Argon2Setting): string {
  const { algorithm, version, memoryKib, time, parallelism, salt } = setting
  return `$${algorithm}$v=${version}$m=${memoryKib},t=${time},p=${parallelism}$${unpadded(salt)}`
}

const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
const BCRYPT_BASE64 = './ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

/** bcrypt's base64 encodes the same bits with another alphabet and without padding. */
export function encodeBcrypt(bytes: Uint8Array): string {
  return unpadded(bytes).replace(/./g, (character) => BCRYPT_BASE64.charAt(BASE64.indexOf(character)))
}

/** The bytes of bcrypt's base64; unused bits of the last character are ignored. */
export function decodeBcrypt(text: string): Buffer {
  return Buffer.from(
    text.replace(/./g, (character) => BASE64.charAt(BCRYPT_BASE64.indexOf(character))),
    'base64',
  )
}
