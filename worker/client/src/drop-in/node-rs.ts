/** The packages `@node-rs/bcrypt` 1 and `@node-rs/argon2` 2, with their hashes made elsewhere. */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import { argon2Setting, bcryptSetting, decodeBcrypt, encodeBcrypt } from '@spillway/queue/wire/setting'
import { parseArgon2, unpadded } from '@spillway/queue/wire/stored-hash'
import type { ExactPasswords } from '../application/create-passwords.js'
import { PasswordsError } from '../application/passwords-error.js'
import { createArgon2 } from './argon2.js'
import { hashingHere } from './bcrypt.js'
import type { NodeRsArgon2, NodeRsBcrypt, Options } from './node-rs-types.js'

type Open = () => ExactPasswords | Promise<ExactPasswords>

const DEFAULT_COST = 12
const SALT_BYTES = 16
const READ_BYTES = 72
const HASH = /^\$2[abxy]\$(\d\d)\$([./A-Za-z0-9]{21}[.Oeu])([./A-Za-z0-9]{31})$/

export function createNodeRsBcrypt(passwords: Open): NodeRsBcrypt {
  const here = () => hashingHere<NodeRsBcrypt>('@node-rs/bcrypt')

  async function digestOf(input: Uint8Array | string, cost: number, salt: Uint8Array): Promise<[string, string]> {
    const setting = bcryptSetting({ algorithm: 'bcrypt', cost, salt: encodeBcrypt(salt) })
    const password = Buffer.from(input).subarray(0, READ_BYTES).toString('base64')
    const made = await (await passwords()).hashExactly({ setting, password })
    return [setting, made.slice(setting.length)]
  }

  async function hash(input: Uint8Array | string, cost?: number | null, given?: Uint8Array | string | null) {
    const rounds = (cost ?? DEFAULT_COST) >>> 0
    if (rounds < 4 || rounds > 31) throw failure('GenericFailure', `Cost needs to be between 4 and 31, got ${rounds}`)
    const salt = Buffer.alloc(SALT_BYTES)
    salt.set(Buffer.from(given ?? randomBytes(SALT_BYTES)).subarray(0, SALT_BYTES))
    return (await digestOf(input, rounds, salt)).join('')
  }

  async function verify(password: Uint8Array | string, stored: Uint8Array | string) {
    const [, cost = '', salt = '', digest] = HASH.exec(Buffer.from(stored).toString()) ?? []
    if (Number(cost) < 4 || Number(cost) > 31 || digest === undefined) return false
    const [, made] = await digestOf(password, Number(cost), decodeBcrypt(salt).subarray(0, SALT_BYTES))
    return timingSafeEqual(Buffer.from(made), Buffer.from(digest))
  }

  return {
    DEFAULT_COST,
    genSalt: async (round, version) => here().genSalt(round, version),
    genSaltSync: (round, version) => here().genSaltSync(round, version),
    hash: (input, cost, salt, signal) => unless(signal, hash(input, cost, salt)),
    hashSync: (input, cost, salt) => here().hashSync(input, cost, salt),
    verify: (password, stored, signal) => unless(signal, verify(password, stored)),
    verifySync: (password, stored) => here().verifySync(password, stored),
    compare: (password, stored, signal) => unless(signal, verify(password, stored)),
    compareSync: (password, stored) => here().compareSync(password, stored),
  }
}

const VERSIONS = [16, 19] as const

export function createNodeRsArgon2(passwords: Open): NodeRsArgon2 {
  const argon2 = createArgon2(passwords)
  const here = () => hashingHere<NodeRsArgon2>('@node-rs/argon2')

  async function hashRaw(password: Uint8Array | string, options?: Options | null): Promise<Buffer> {
    return await argon2.hash(Buffer.from(password), { ...complete(options), raw: true }).catch(asTheirs)
  }

  async function hash(password: Uint8Array | string, options?: Options | null): Promise<string> {
    const { salt = randomBytes(SALT_BYTES), ...given } = options ?? {}
    const { memoryCost: memoryKib, timeCost: time, parallelism, version, type } = complete(given)
    const digest = await hashRaw(password, { ...given, salt })
    const algorithm = (['argon2d', 'argon2i', 'argon2id'] as const)[type]
    const setting = { algorithm, version, memoryKib, time, parallelism, salt: Buffer.from(salt) }
    return `${argon2Setting(setting)}$${unpadded(digest)}`
  }

  async function verify(stored: Uint8Array | string, password: Uint8Array | string, options?: Options | null) {
    const text = Buffer.from(stored).toString()
    if (parseArgon2(text) === undefined) throw failure('InvalidArg', 'Decoding failed')
    const { secret } = complete(options)
    return await argon2.verify(text, Buffer.from(password), secret && { secret })
  }

  return {
    Algorithm: { Argon2d: 0, Argon2i: 1, Argon2id: 2 },
    Version: { V0x10: 0, V0x13: 1 },
    hash: (password, options, signal) => unless(signal, hash(password, options)),
    hashRaw: (password, options, signal) => unless(signal, hashRaw(password, options)),
    hashSync: (password, options) => here().hashSync(password, options),
    hashRawSync: (password, options) => here().hashRawSync(password, options),
    parseOptions: (stored) => here().parseOptions(stored),
    verify: (stored, password, options, signal) => unless(signal, verify(stored, password, options)),
    verifySync: (stored, password, options) => here().verifySync(stored, password, options),
  }
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

function failure(code: 'GenericFailure' | 'InvalidArg', message: string): Error {
  return Object.assign(new Error(message), { code })
}

/** A signal that has fired ends a call that was not answered; its hash is still made. */
async function unless<T>(signal: AbortSignal | null | undefined, work: Promise<T>): Promise<T> {
  if (!signal) return await work
  return await new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    work.finally(() => signal.removeEventListener('abort', abort)).then(resolve, reject)
    signal.addEventListener('abort', abort)
    if (signal.aborted) abort()
  })
}
