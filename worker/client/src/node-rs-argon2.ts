/**
 * `@spillway/client/node-rs-argon2`: a drop-in replacement of the package `@node-rs/argon2`,
 * version 2, set up by the environment. What ends with Sync hashes in this process, on its event
 * loop, and warns once.
 */
import { randomBytes } from 'node:crypto'
import { argon2Setting } from '@spillway/queue/wire/setting'
import { parseArgon2, unpadded } from '@spillway/queue/wire/stored-hash'
import { PasswordsError } from './application/passwords-error.js'
import * as original from './argon2.js'
import { failure, hashingHere, unless } from './drop-in/shared.js'
import { close as closeShared } from './shared-passwords.js'

type Bytes = Uint8Array | string
type Left = AbortSignal | null | undefined

/** Rejects what waits with `closed`, and ends the process beside or disconnects. */
export const close: () => Promise<void> = closeShared

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

export interface Parsed {
  algorithm: 0 | 1 | 2
  version: 0 | 1
  memoryCost: number
  timeCost: number
  parallelism: number
  outputLen: number
  saltLen: number
}

export const Algorithm = { Argon2d: 0, Argon2i: 1, Argon2id: 2 } as const
export const Version = { V0x10: 0, V0x13: 1 } as const
/** By {@link Version}. */
const VERSIONS = [16, 19] as const
const ALGORITHMS = ['argon2d', 'argon2i', 'argon2id'] as const
const SALT_BYTES = 16

const here = () =>
  hashingHere<Pick<typeof argon2, 'hashSync' | 'hashRawSync' | 'verifySync' | 'parseOptions'>>('@node-rs/argon2')

export function hash(password: Bytes, options?: Options | null, signal?: Left): Promise<string> {
  return unless(signal, hashed(password, options))
}

export function hashSync(password: Bytes, options?: Options | null): string {
  return here().hashSync(password, options)
}

export function hashRaw(password: Bytes, options?: Options | null, signal?: Left): Promise<Buffer> {
  return unless(signal, digestOf(password, options))
}

export function hashRawSync(password: Bytes, options?: Options | null): Buffer {
  return here().hashRawSync(password, options)
}

export function verify(hashed: Bytes, password: Bytes, options?: Options | null, signal?: Left): Promise<boolean> {
  return unless(signal, matches(hashed, password, options))
}

export function verifySync(hashed: Bytes, password: Bytes, options?: Options | null): boolean {
  return here().verifySync(hashed, password, options)
}

export function parseOptions(hashed: Bytes): Parsed {
  return here().parseOptions(hashed)
}

const argon2 = {
  ...{ Algorithm, Version, hash, hashSync, hashRaw, hashRawSync, verify, verifySync, parseOptions, close },
}
export default argon2

async function digestOf(password: Bytes, options?: Options | null): Promise<Buffer> {
  return await original.hash(Buffer.from(password), { ...complete(options), raw: true }).catch(asTheirs)
}

async function hashed(password: Bytes, options?: Options | null): Promise<string> {
  const { salt = randomBytes(SALT_BYTES), ...given } = options ?? {}
  const { memoryCost: memoryKib, timeCost: time, parallelism, version, type } = complete(given)
  const digest = await digestOf(password, { ...given, salt })
  const setting = { algorithm: ALGORITHMS[type], version, memoryKib, time, parallelism, salt: Buffer.from(salt) }
  return `${argon2Setting(setting)}$${unpadded(digest)}`
}

async function matches(stored: Bytes, password: Bytes, options?: Options | null): Promise<boolean> {
  const text = Buffer.from(stored).toString()
  if (parseArgon2(text) === undefined) throw failure('InvalidArg', 'Decoding failed')
  const { secret } = complete(options)
  return await original.verify(text, Buffer.from(password), secret && { secret })
}

/** As the package `argon2` names them. */
function complete(options: Options | null | undefined) {
  const { memoryCost = 19_456, timeCost = 2, parallelism = 1, outputLen = 32, algorithm = 2 } = options ?? {}
  const { version = 1, secret, salt } = options ?? {}
  return {
    ...{ memoryCost, timeCost, parallelism, hashLength: outputLen, type: algorithm, version: VERSIONS[version] },
    ...(secret && { secret: Buffer.from(secret) }),
    ...(salt && { salt: Buffer.from(salt) }),
  }
}

function asTheirs(error: unknown): never {
  if (!(error instanceof Error) || error instanceof PasswordsError) throw error
  throw Object.assign(error, { code: 'InvalidArg' })
}
