/**
 * Digests of argon2, with all of their inputs given, and checked as the C code of the package
 * `argon2` does.
 */

import { type Argon2Setting, argon2Setting } from '@spillway/queue/wire/setting'
import type { ExactPasswords } from '../application/create-passwords.js'

/** As callers give them, who need not be typed. */
interface GivenInput {
  password: Buffer
  salt: unknown
  secret: unknown
  data: unknown
  hashLength: unknown
  m: unknown
  t: unknown
  p: unknown
  version: unknown
  type: unknown
}

export interface Argon2Input {
  password: Buffer
  setting: Argon2Setting
  digestBytes: number
  secret: Buffer
  associatedData: Buffer
}

const ALGORITHMS = ['argon2d', 'argon2i', 'argon2id'] as const

/** RFC 9106, 3.1. */
const LEAST = { digestBytes: 4, saltBytes: 8, memoryKib: 8 }

/** Throws the errors of the package, in its order. */
export function readInput(given: GivenInput): Argon2Input {
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
  const algorithm = ALGORITHMS[type]
  if (algorithm === undefined) throw new Error('There is no such version of Argon2')
  const setting = { algorithm, version, memoryKib, time, parallelism, salt }
  return { password: given.password, setting, digestBytes, secret, associatedData }
}

/** Rejects as {@link ExactPasswords.hashExactly} does. */
export async function rawDigest(
  passwords: () => ExactPasswords | Promise<ExactPasswords>,
  input: Argon2Input,
): Promise<Buffer> {
  const { password, digestBytes, secret, associatedData } = input
  const setting = argon2Setting(input.setting)
  const hash = await (await passwords()).hashExactly({
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

/**
 * As the language converts to a number: throws for a BigInt or a Symbol, which `Number` does not
 * for the first.
 */
function asUint32(value: unknown): number {
  return Reflect.apply(Math.max, undefined, [value]) >>> 0
}
