/** bcrypt, in the modular crypt format. New hashes are `2b`. */

import { randomBytes } from 'node:crypto'
import { bcryptReadsWhole } from '@spillway/client/protocol/policy'
import {
  type BcryptSetting,
  bcryptSetting,
  decodeBcrypt,
  encodeBcrypt,
  newBcryptSetting,
} from '@spillway/client/protocol/setting'
import { parseStoredHash } from '@spillway/client/protocol/stored-hash'
import type { Algorithm } from './algorithm.js'
import { type Engine, type KnownAnswer, loadEngines, verifyByFirst } from './engine.js'
import { NATIVE_NAME, type NativeEngine } from './native.js'
import type { Threads } from './threads.js'

/** The lowest cost there is, and the highest that is accepted: one bad row must not exhaust a worker. */
const LOWEST_COST = 4
const COST_LIMIT = 17
const DIGEST_BYTES = 23

export interface BcryptCost {
  cost: number
}

interface BcryptEngine extends Engine {
  /** Reads 72 bytes of a password; a NUL among them is one like any other. */
  hash(password: string | Uint8Array, setting: BcryptSetting, signal?: AbortSignal): Promise<string>
}

export async function createBcrypt(
  threads: Threads,
  native?: NativeEngine,
): Promise<Algorithm<BcryptCost, BcryptSetting>> {
  const engines = await loadEngines(
    [() => nativeEngine(native), () => nodeRsEngine(threads), () => nodeEngine(threads)],
    knownAnswers,
  )
  return {
    family: 'bcrypt',
    engine: engines[0].name,
    recognizes(storedHash) {
      const stored = parseStoredHash(storedHash)
      return stored?.algorithm === 'bcrypt' && isAffordable(stored)
    },
    isAffordable,
    algorithm: () => 'bcrypt',
    hash: (password, { cost }, signal) => engines[0].hash(password, newBcryptSetting(cost), signal),
    hashExactly({ password }, setting, signal) {
      return isAffordable(setting) ? engines[0].hash(Buffer.from(password, 'base64'), setting, signal) : undefined
    },
    decoyHash: ({ cost }) => bcryptSetting(newBcryptSetting(cost)) + encodeBcrypt(randomBytes(DIGEST_BYTES)),
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
    hash: (password, setting, signal) => native.hash(password, bcryptSetting(setting), { signal }),
    verify: (password, storedHash, signal) => native.verify(password, storedHash, { signal }),
  }
}

async function nodeRsEngine({ run }: Threads): Promise<BcryptEngine> {
  const { hash, verify } = await import('@node-rs/bcrypt')
  const hashV2: BcryptEngine['hash'] = (password, setting) => hash(password, { salt: bcryptSetting(setting) })
  // Version 1, which applications have, takes cost and salt apart.
  const hashV1: BcryptEngine['hash'] = (password, { cost, salt }) =>
    Reflect.apply(hash, undefined, [password, cost, decodeBcrypt(salt)])
  const isV2 = await makesHashes(hashV2)
  if (!isV2 && !(await makesHashes(hashV1))) throw new Error('it is of an unknown version')
  return {
    name: '@node-rs/bcrypt',
    hash: (password, setting) => run(() => (isV2 ? hashV2 : hashV1)(password, setting)),
    verify: (password, storedHash) => run(() => verify(password, storedHash)),
  }
}

async function makesHashes(hash: BcryptEngine['hash']): Promise<boolean> {
  try {
    return (await hash('', newBcryptSetting(LOWEST_COST))).startsWith('$2b$04$')
  } catch {
    return false
  }
}

async function nodeEngine({ run }: Threads): Promise<BcryptEngine> {
  const { default: bcrypt } = await import('bcrypt')
  return {
    name: 'bcrypt',
    hash: (password, setting) => run(() => bcrypt.hash(Buffer.from(password), bcryptSetting(setting))),
    verify: (password, storedHash) => run(() => bcrypt.compare(password, storedHash)),
  }
}

function isAffordable({ cost }: BcryptCost): boolean {
  return cost >= LOWEST_COST && cost <= COST_LIMIT
}

/** Test vectors of Openwall's crypt_blowfish. */
const knownAnswers: KnownAnswer[] = [
  { password: 'U*U', storedHash: '$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW' },
  { password: 'U*U*', storedHash: '$2a$05$CCCCCCCCCCCCCCCCCCCCC.VGOzA784oUp/Z0DY336zx7pLYAy0lwK' },
]
