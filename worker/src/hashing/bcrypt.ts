/** bcrypt, in the modular crypt format. New hashes are `2b`. */

import { randomBytes } from 'node:crypto'
import { bcryptReadsWhole } from '@spillway/client/protocol/policy'
import { parseStoredHash } from '@spillway/client/protocol/stored-hash'
import type { Algorithm } from './algorithm.js'
import { type Engine, type KnownAnswer, loadEngines, verifyByFirst } from './engine.js'
import { NATIVE_NAME, type NativeEngine } from './native.js'
import type { Threads } from './threads.js'

/** The lowest cost there is, and the highest that is accepted: one bad row must not exhaust a worker. */
const LOWEST_COST = 4
const COST_LIMIT = 17
const SALT_BYTES = 16
const DIGEST_BYTES = 23

export interface BcryptCost {
  cost: number
}

interface BcryptEngine extends Engine {
  hash(password: string, cost: number, signal?: AbortSignal): Promise<string>
}

export async function createBcrypt(threads: Threads, native?: NativeEngine): Promise<Algorithm<BcryptCost>> {
  const engines = await loadEngines(
    [() => nativeEngine(native), () => nodeRsEngine(threads), () => nodeEngine(threads)],
    knownAnswers,
  )
  return {
    family: 'bcrypt',
    engine: engines[0].name,
    recognizes(storedHash) {
      const stored = parseStoredHash(storedHash)
      return stored?.algorithm === 'bcrypt' && stored.cost >= LOWEST_COST && stored.cost <= COST_LIMIT
    },
    algorithm: () => 'bcrypt',
    async hash(password, { cost }, signal) {
      if (!bcryptReadsWhole(password)) throw new Error('bcrypt does not read this password whole')
      return await engines[0].hash(password, cost, signal)
    },
    decoyHash: ({ cost }) => setting(cost) + encode(randomBytes(DIGEST_BYTES)),
    async verify(password, storedHash, signal) {
      // `2y` is PHP's name for `2b`.
      const hash = storedHash.replace(/^\$2y\$/, '$2b$')
      const readWhole = bcryptReadsWhole(password)
      const matches = await verifyByFirst(engines, readWhole ? password : '', hash, signal)
      return readWhole && matches
    },
  }
}

async function nativeEngine(native: NativeEngine | undefined): Promise<BcryptEngine> {
  if (native === undefined) throw new Error('it is not built, or turned off')
  return {
    name: NATIVE_NAME,
    hash: (password, cost, signal) => native.hash(password, setting(cost), { signal }),
    verify: (password, storedHash, signal) => native.verify(password, storedHash, { signal }),
  }
}

async function nodeRsEngine({ run }: Threads): Promise<BcryptEngine> {
  const { hash, verify } = await import('@node-rs/bcrypt')
  const hashV2 = (password: string, cost: number) => hash(password, { cost })
  // Version 1, which applications have, takes the cost as a number.
  const hashV1 = (password: string, cost: number): Promise<string> => Reflect.apply(hash, undefined, [password, cost])
  const isV2 = await makesHashes(hashV2)
  if (!isV2 && !(await makesHashes(hashV1))) throw new Error('it is of an unknown version')
  return {
    name: '@node-rs/bcrypt',
    hash: (password, cost) => run(() => (isV2 ? hashV2 : hashV1)(password, cost)),
    verify: (password, storedHash) => run(() => verify(password, storedHash)),
  }
}

async function makesHashes(hash: BcryptEngine['hash']): Promise<boolean> {
  try {
    return (await hash('', LOWEST_COST)).startsWith('$2b$04$')
  } catch {
    return false
  }
}

async function nodeEngine({ run }: Threads): Promise<BcryptEngine> {
  const { default: bcrypt } = await import('bcrypt')
  return {
    name: 'bcrypt',
    hash: (password, cost) => run(() => bcrypt.hash(password, cost)),
    verify: (password, storedHash) => run(() => bcrypt.compare(password, storedHash)),
  }
}

/** The setting of a new hash: its cost and a random salt. */
function setting(cost: number): string {
  return `$2b$${String(cost).padStart(2, '0')}$${encode(randomBytes(SALT_BYTES))}`
}

const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
const BCRYPT_BASE64 = './ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

/** bcrypt's base64 has the same bits as any, in another alphabet and without padding. */
function encode(bytes: Buffer): string {
  const text = bytes.toString('base64').replace(/=+$/, '')
  return text.replace(/./g, (character) => BCRYPT_BASE64.charAt(BASE64.indexOf(character)))
}

/** Test vectors of Openwall's crypt_blowfish. */
const knownAnswers: KnownAnswer[] = [
  { password: 'U*U', storedHash: '$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW' },
  { password: 'U*U*', storedHash: '$2a$05$CCCCCCCCCCCCCCCCCCCCC.VGOzA784oUp/Z0DY336zx7pLYAy0lwK' },
]
