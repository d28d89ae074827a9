/** The types of `@spillway/client/argon2`, as in the package `argon2`. They import nothing. */

/** `Options` until 0.44. */
export interface HashOptions {
  /** The length of the digest in bytes [32]. */
  hashLength?: number
  /** Passes [3]. */
  timeCost?: number
  /** Memory in KiB [65536]. */
  memoryCost?: number
  /** Lanes [4]. */
  parallelism?: number
  /** `argon2d`, `argon2i` or `argon2id` [argon2id]. */
  type?: 0 | 1 | 2
  version?: number
  salt?: Buffer | undefined
  associatedData?: Buffer | undefined
  secret?: Buffer | undefined
}

export interface VerifyOptions {
  secret?: Buffer | undefined
}

export interface Argon2 {
  readonly argon2d: 0
  readonly argon2i: 1
  readonly argon2id: 2

  /** The digest alone. */
  hash(password: Buffer | string, options: HashOptions & { raw: true }): Promise<Buffer>
  /** A new hash, as a PHC string. */
  hash(password: Buffer | string, options?: HashOptions & { raw?: boolean }): Promise<string>

  /** Whether a hash was made with other costs or of another version. Hashes nothing. */
  needsRehash(
    digest: string,
    options?: {
      timeCost?: number | undefined
      memoryCost?: number | undefined
      parallelism?: number | undefined
      version?: number | undefined
    },
  ): boolean

  /** Whether a password matches a hash. */
  verify(digest: string, password: Buffer | string, options?: VerifyOptions): Promise<boolean>
}
