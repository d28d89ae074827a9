/**
 * The types of `@spillway/client/node-rs-bcrypt` and `node-rs-argon2`, as in the packages of
 * @node-rs. They import nothing.
 */

type Bytes = Uint8Array | string
type Left = AbortSignal | null | undefined

/** What ends with Sync hashes in this process, on its event loop, and warns once. */
export interface NodeRsBcrypt {
  readonly DEFAULT_COST: number
  genSalt(round: number, version?: '2a' | '2x' | '2y' | '2b', signal?: Left): Promise<string>
  genSaltSync(round: number, version?: '2a' | '2x' | '2y' | '2b'): string
  hash(input: Bytes, cost?: number | null, salt?: Bytes | null, signal?: Left): Promise<string>
  hashSync(input: Bytes, cost?: number | null, salt?: Bytes | null): string
  verify(password: Bytes, hash: Bytes, signal?: Left): Promise<boolean>
  verifySync(password: Bytes, hash: Bytes): boolean
  compare(password: Bytes, hash: Bytes, signal?: Left): Promise<boolean>
  compareSync(password: Bytes, hash: Bytes): boolean
}

export interface Options {
  memoryCost?: number
  timeCost?: number
  outputLen?: number
  parallelism?: number
  /** Argon2d, Argon2i, Argon2id [2]. */
  algorithm?: 0 | 1 | 2
  /** 0x10, 0x13 [1]. */
  version?: 0 | 1
  secret?: Uint8Array
  salt?: Uint8Array
}

/** What ends with Sync hashes in this process, on its event loop, and warns once. */
export interface NodeRsArgon2 {
  readonly Algorithm: { readonly Argon2d: 0; readonly Argon2i: 1; readonly Argon2id: 2 }
  readonly Version: { readonly V0x10: 0; readonly V0x13: 1 }
  hash(password: Bytes, options?: Options | null, signal?: Left): Promise<string>
  hashRaw(password: Bytes, options?: Options | null, signal?: Left): Promise<Buffer>
  hashSync(password: Bytes, options?: Options | null): string
  parseOptions(hashed: Bytes): {
    algorithm: 0 | 1 | 2
    version: 0 | 1
    memoryCost: number
    timeCost: number
    parallelism: number
    outputLen: number
    saltLen: number
  }
  hashRawSync(password: Bytes, options?: Options | null): Buffer
  verify(hashed: Bytes, password: Bytes, options?: Options | null, signal?: Left): Promise<boolean>
  verifySync(hashed: Bytes, password: Bytes, options?: Options | null): boolean
}
