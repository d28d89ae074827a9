/**
 * The package `argon2`, version 0.45, with its digests made elsewhere: its functions, options,
 * outcomes and errors.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { deserialize, serialize } from '@phc/format'
import { argon2Setting } from '@spillway/queue/wire/setting'
import { parseArgon2, unpadded } from '@spillway/queue/wire/stored-hash'
import type { ExactPasswords } from '../application/create-passwords.js'
import { PasswordsError } from '../application/passwords-error.js'
import { type Argon2Input, rawDigest, readInput } from './argon2-digest.js'
import type { Argon2, HashOptions } from './argon2-types.js'
import { asText } from './bcrypt.js'

const TYPES = { argon2d: 0, argon2i: 1, argon2id: 2 } as const
const NAMES = ['argon2d', 'argon2i', 'argon2id'] as const
const SALT_BYTES = 16
const NOTHING = Buffer.alloc(0)

const DEFAULTS = {
  hashLength: 32,
  timeCost: 3,
  memoryCost: 65_536,
  parallelism: 4,
  type: TYPES.argon2id,
  version: 19,
}

/**
 * @param passwords gives what hashes, when the first call needs it; a call rejects with what this
 * throws
 */
export function createArgon2(passwords: () => ExactPasswords | Promise<ExactPasswords>): Argon2 {
  async function hash(password: Buffer | string, options: HashOptions & { raw: true }): Promise<Buffer>
  async function hash(password: Buffer | string, options?: HashOptions & { raw?: boolean }): Promise<string>
  async function hash(password: Buffer | string, options?: HashOptions & { raw?: boolean }): Promise<Buffer | string> {
    const { raw, salt: given, ...costs } = { ...DEFAULTS, ...options }
    refuseTooLarge(costs)
    const salt = given ?? randomBytes(SALT_BYTES)
    const { hashLength, secret = NOTHING, type, version, associatedData: data = NOTHING } = costs
    const { memoryCost: m, timeCost: t, parallelism: p } = costs
    const inputs = { salt, secret, data, hashLength, m, t, p, version, type }
    const input = readInput({ password: Buffer.from(password), ...inputs })
    if (raw) return await rawDigest(passwords, input)
    // It refuses more than hashing does, after a needless hash.
    serialize({ id: idOf(type), version, params: { m, p, t }, salt, hash: NOTHING })
    return encoded(input, await rawDigest(passwords, input))
  }

  return {
    ...TYPES,
    hash,
    needsRehash(digest, options = {}) {
      const { memoryCost, timeCost, parallelism, version } = { ...DEFAULTS, ...options }
      const {
        version: v,
        params: { m, t, p },
      } = deserialize(digest)
      return !(isSame(v, version) && isSame(m, memoryCost) && isSame(t, timeCost) && isSame(p, parallelism))
    },
    async verify(digest, password, options = {}) {
      const { id, ...rest } = deserialize(digest)
      if (!isType(id)) return false
      const {
        version = 16,
        params: { m, t, p, data = '' },
        salt,
        hash,
      } = rest
      const { secret = NOTHING } = options
      // Data whose base64 is digits alone would be read as a number.
      const associatedData = parseArgon2(digest)?.associatedData ?? Buffer.from(String(data), 'base64')
      const given = { password: Buffer.from(password), salt, secret, data: associatedData }
      const input = readInput({ ...given, hashLength: hash.byteLength, m, t, p, version, type: TYPES[id] })
      const text = asText(input.password)
      if (text !== undefined && isPlain(input)) {
        return await (await passwords()).verifyExactly(text, `${argon2Setting(input.setting)}$${unpadded(hash)}`)
      }
      return timingSafeEqual(await rawDigest(passwords, input), hash)
    },
  }
}

function refuseTooLarge(costs: Omit<HashOptions, 'salt'>): void {
  const { hashLength = 0, memoryCost = 0, timeCost = 0, parallelism = 0 } = costs
  if (hashLength > 2 ** 32 - 1) throw new RangeError('Hash length is too large')
  if (memoryCost > 2 ** 32 - 1) throw new RangeError('Memory cost is too large')
  if (timeCost > 2 ** 32 - 1) throw new RangeError('Time cost is too large')
  if (parallelism > 2 ** 24 - 1) throw new RangeError('Parallelism is too large')
}

/** Undefined for any other value. */
function idOf(type: unknown): string | undefined {
  return NAMES.find((_, number) => number === type)
}

/**
 * The text of a hash, which says all that the hash was made with but the secret. Throws for one
 * that would be read as another.
 */
function encoded({ setting, associatedData }: Argon2Input, digest: Buffer): string {
  const { algorithm: id, version, memoryKib: m, time: t, parallelism: p, salt } = setting
  const data = associatedData.byteLength > 0 ? { data: associatedData } : {}
  const text = serialize({ id, version, params: { m, p, t, ...data }, salt, hash: digest })
  const made = associatedData.byteLength > 0 ? { ...setting, digest, associatedData } : { ...setting, digest }
  if (isDeepStrictEqual(parseArgon2(text), made)) return text
  throw new PasswordsError('unsupported_hash', 'no password would match a hash with these options')
}

function isType(id: string): id is keyof typeof TYPES {
  return id in TYPES
}

/** Whether the text of the hash holds all that it was made with. */
function isPlain({ secret, associatedData }: Argon2Input): boolean {
  return secret.byteLength === 0 && associatedData.byteLength === 0
}

/** As numbers; anything else counts as missing. */
function isSame(one: unknown, other: unknown): boolean {
  return Number(one) === Number(other)
}
