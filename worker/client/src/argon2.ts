/**
 * `@spillway/client/argon2`: a drop-in replacement of the package `argon2`, version 0.45,
 * configured by the environment. Its digests are made elsewhere; callers see no difference.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { deserialize, serialize } from '@phc/format'
import { argon2Setting } from '@spillway/queue/wire/setting'
import type { Argon2Setting } from '@spillway/queue/wire/stored-hash'
import { parseArgon2, unpadded } from '@spillway/queue/wire/stored-hash'
import { PasswordsError } from './application/passwords-error.js'
import { asText } from './drop-in/shared.js'
import { close as closeShared, sharedPasswords } from './shared-passwords.js'

export type { HashOptions as Options }
/** Rejects waiting calls with `closed`, and ends the process beside or disconnects. */
export const close: () => Promise<void> = closeShared

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

export const argon2d = 0
export const argon2i = 1
export const argon2id = 2
/** Names of the types, by their numbers. */
const NAMES = ['argon2d', 'argon2i', 'argon2id'] as const
const SALT_BYTES = 16
const NOTHING = Buffer.alloc(0)

const DEFAULTS = {
  hashLength: 32,
  timeCost: 3,
  memoryCost: 65_536,
  parallelism: 4,
  type: argon2id,
  version: 19,
} as const

/** Returns only the digest. */
export async function hash(password: Buffer | string, options: HashOptions & { raw: true }): Promise<Buffer>
/** A new hash, as a PHC string. */
export async function hash(password: Buffer | string, options?: HashOptions & { raw?: boolean }): Promise<string>
export async function hash(
  password: Buffer | string,
  options?: HashOptions & { raw?: boolean },
): Promise<Buffer | string> {
  const { raw, salt: given, ...costs } = { ...DEFAULTS, ...options }
  refuseTooLarge(costs)
  const salt = given ?? randomBytes(SALT_BYTES)
  const { hashLength, secret = NOTHING, type, version, associatedData: data = NOTHING } = costs
  const { memoryCost: m, timeCost: t, parallelism: p } = costs
  const inputs = { salt, secret, data, hashLength, m, t, p, version, type }
  const input = readInput({ password: Buffer.from(password), ...inputs })
  if (raw) return await rawDigest(input)
  // It refuses more than hashing does, after a needless hash.
  serialize({ id: NAMES.find((_, number) => number === type), version, params: { m, p, t }, salt, hash: NOTHING })
  return encoded(input, await rawDigest(input))
}

/** Whether a hash was made with other costs or of another version. Hashes nothing. */
export function needsRehash(
  digest: string,
  options: Partial<Record<'timeCost' | 'memoryCost' | 'parallelism' | 'version', number | undefined>> = {},
): boolean {
  const { memoryCost, timeCost, parallelism, version } = { ...DEFAULTS, ...options }
  const {
    version: v,
    params: { m, t, p },
  } = deserialize(digest)
  return !(isSame(v, version) && isSame(m, memoryCost) && isSame(t, timeCost) && isSame(p, parallelism))
}

/** Whether a password matches a hash. */
export async function verify(digest: string, password: Buffer | string, options: VerifyOptions = {}): Promise<boolean> {
  const { id, ...rest } = deserialize(digest)
  const type = ['argon2d', 'argon2i', 'argon2id'].indexOf(id)
  if (type < 0) return false
  const {
    version = 16,
    params: { m, t, p, data = '' },
    salt,
    hash,
  } = rest
  const { secret = NOTHING } = options
  // Data whose base64 has only digits would be read as a number.
  const associatedData = parseArgon2(digest)?.associatedData ?? Buffer.from(String(data), 'base64')
  const given = { password: Buffer.from(password), salt, secret, data: associatedData }
  const input = readInput({ ...given, hashLength: hash.byteLength, m, t, p, version, type })
  const text = asText(input.password)
  if (text !== undefined && isPlain(input)) {
    return await (await sharedPasswords()).verifyExactly(text, `${argon2Setting(input.setting)}$${unpadded(hash)}`)
  }
  return timingSafeEqual(await rawDigest(input), hash)
}

function refuseTooLarge(costs: HashOptions): void {
  const { hashLength = 0, memoryCost = 0, timeCost = 0, parallelism = 0 } = costs
  if (hashLength > 2 ** 32 - 1) throw new RangeError('Hash length is too large')
  if (memoryCost > 2 ** 32 - 1) throw new RangeError('Memory cost is too large')
  if (timeCost > 2 ** 32 - 1) throw new RangeError('Time cost is too large')
  if (parallelism > 2 ** 24 - 1) throw new RangeError('Parallelism is too large')
}

/** The text of a hash. Throws for options that the text cannot hold. */
function encoded({ setting, associatedData }: Argon2Input, digest: Buffer): string {
  const { algorithm: id, version, memoryKib: m, time: t, parallelism: p, salt } = setting
  const data = associatedData.byteLength > 0 ? { data: associatedData } : {}
  const text = serialize({ id, version, params: { m, p, t, ...data }, salt, hash: digest })
  const made = associatedData.byteLength > 0 ? { ...setting, digest, associatedData } : { ...setting, digest }
  if (isDeepStrictEqual(parseArgon2(text), made)) return text
  throw new PasswordsError('unsupported_hash', 'no password would match a hash with these options')
}

/** Whether the text of the hash contains all of its inputs. */
function isPlain({ secret, associatedData }: Argon2Input): boolean {
  return secret.byteLength === 0 && associatedData.byteLength === 0
}

/** Compares two values as numbers; other values count as missing. */
function isSame(one: unknown, other: unknown): boolean {
  return Number(one) === Number(other)
}

/** As callers give them; callers may be untyped. */
type Given = 'salt' | 'secret' | 'data' | 'hashLength' | 'm' | 't' | 'p' | 'version' | 'type'
type GivenInput = { password: Buffer } & Record<Given, unknown>

interface Argon2Input {
  password: Buffer
  setting: Argon2Setting
  digestBytes: number
  secret: Buffer
  associatedData: Buffer
}

/** RFC 9106, 3.1. */
const LEAST = { digestBytes: 4, saltBytes: 8, memoryKib: 8 }

/** Checks as the C code of the package does: throws its errors, in its order. */
function readInput(given: GivenInput): Argon2Input {
  const digestBytes = asUint32(given.hashLength)
  const memoryKib = asUint32(given.m)
  const time = asUint32(given.t)
  const parallelism = asUint32(given.p)
  const version = asUint32(given.version)
  const type = asUint32(given.type)
  const [salt, secret, associatedData] = [asBytes(given.salt), asBytes(given.secret), asBytes(given.data)]
  if (digestBytes === 0) throw new Error('Output pointer is NULL')
  if (digestBytes < LEAST.digestBytes) throw new Error('Output is too short')
  if (salt.byteLength < LEAST.saltBytes) throw new Error('Salt is too short')
  if (memoryKib < Math.max(LEAST.memoryKib, LEAST.memoryKib * parallelism)) throw new Error('Memory cost is too small')
  if (time < 1) throw new Error('Time cost is too small')
  if (parallelism < 1) throw new Error('Too few lanes')
  const algorithm = NAMES[type]
  if (algorithm === undefined) throw new Error('There is no such version of Argon2')
  const setting = { algorithm, version, memoryKib, time, parallelism, salt }
  return { password: given.password, setting, digestBytes, secret, associatedData }
}

async function rawDigest(input: Argon2Input): Promise<Buffer> {
  const { password, digestBytes, secret, associatedData } = input
  const setting = argon2Setting(input.setting)
  const hash = await (await sharedPasswords()).hashExactly({
    setting,
    password: password.toString('base64'),
    digestBytes,
    ...(secret.byteLength > 0 ? { secret: secret.toString('base64') } : {}),
    ...(associatedData.byteLength > 0 ? { associatedData: associatedData.toString('base64') } : {}),
  })
  return Buffer.from(hash.slice(setting.length + 1), 'base64')
}

function asBytes(value: unknown): Buffer {
  if (!ArrayBuffer.isView(value)) throw new Error('Invalid argument')
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength)
}

/** Converts as the language does: unlike `Number` it throws for a BigInt. */
function asUint32(value: unknown): number {
  return Reflect.apply(Math.max, undefined, [value]) >>> 0
}
