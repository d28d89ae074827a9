/** Recipes: what a stored hash was made with, and what the right password gives. */
import type { RefusalCode } from '@spillway/queue/wire/job'
import type { Argon2Hash } from '@spillway/queue/wire/stored-hash'
import type { DigestProgram } from './digest-programs.js'

export interface Argon2Recipe {
  method: 'argon2'
  stored: Argon2Hash
}

export interface BcryptRecipe {
  method: 'bcrypt'
  /** `2`: no NUL at the end of the password. `2x`: its bytes sign-extended. `2b`: all others. */
  variant: '2' | '2b' | '2x'
  cost: number
  /** 22 and 31 characters of bcrypt's base64. */
  salt: string
  digest: string
}

/** Digests with their lengths in bytes. */
export const pbkdf2Digests = { sha1: 20, sha224: 28, sha256: 32, sha384: 48, sha512: 64 } as const

export interface Pbkdf2Recipe {
  method: 'pbkdf2'
  digest: keyof typeof pbkdf2Digests
  iterations: number
  salt: Buffer
  key: Buffer
}

export interface ScryptCost {
  /** N, r and p of RFC 7914. */
  cost: number
  blockSize: number
  parallelization: number
}

export interface ScryptRecipe extends ScryptCost {
  method: 'scrypt'
  salt: Buffer
  key: Buffer
}

/** Firebase's: the signer key of a project, encrypted with a key that scrypt derives. */
export interface FirebaseRecipe extends ScryptCost {
  method: 'firebase'
  salt: Buffer
  signerKey: Buffer
  encrypted: Buffer
}

export interface DigestRecipe {
  method: 'digest'
  program: DigestProgram
  /** The digest as it is written, so that only the text of its maker matches. */
  text: string
  encoding: DigestEncoding
}
export type DigestEncoding = 'hex' | 'base64' | 'crypt64'

/** The argon2 hash of a weak digest in hexadecimal. */
export interface WrappedRecipe {
  method: 'wrapped'
  inner: DigestProgram
  outer: Argon2Recipe
}

type DerivedKeyRecipe = Pbkdf2Recipe | ScryptRecipe | FirebaseRecipe
export type Recipe = Argon2Recipe | BcryptRecipe | DerivedKeyRecipe | DigestRecipe | WrappedRecipe
export type RecipeOf<Name extends Recipe['method']> = Extract<Recipe, { method: Name }>

/** A stored hash that is damaged, of an unknown format, or of too high a cost. */
export class UnsupportedHashError extends Error {
  override readonly name = 'UnsupportedHashError'
  readonly code: RefusalCode = 'unsupported_hash'
}

/** Text is hashed as UTF-8. */
export type Password = string | Uint8Array

/** Verifies the hashes of one function. All of its work is off the event loop. */
export interface Method<R extends Recipe> {
  /** For operators. */
  readonly family: string
  /** The package in use. */
  readonly engine: string
  /** Rejects with the signal's reason if it was aborted before the call began. */
  verify(password: Password, recipe: R, signal?: AbortSignal): Promise<boolean>
}

/** The algorithms of stored hashes, as labels of metrics. */
export const algorithmNames = [
  ...(['argon2id', 'argon2i', 'argon2d', 'bcrypt'] as const),
  ...(['pbkdf2', 'scrypt', 'digest', 'sha-crypt', 'phpass', 'wrapped', 'other'] as const),
] as const
export type AlgorithmName = (typeof algorithmNames)[number]
