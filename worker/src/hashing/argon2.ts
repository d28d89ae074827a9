/** argon2id (RFC 9106), in the PHC string format. */

import { randomBytes } from 'node:crypto'
import type { Argon2Cost } from '@spillway/client/protocol/policy'
import { parseStoredHash } from '@spillway/client/protocol/stored-hash'
import type { Algorithm } from './algorithm.js'
import { type Engine, type KnownAnswer, loadEngines, verifyByFirst } from './engine.js'
import { argon2Setting, NATIVE_NAME, type NativeEngine } from './native.js'
import type { Threads } from './threads.js'

/** The highest cost of a stored hash that is accepted: one bad row must not exhaust a worker. */
const MEMORY_LIMIT_KIB = 1_048_576
const TIME_LIMIT = 64
const PARALLELISM_LIMIT = 16

const variants = ['argon2id', 'argon2i', 'argon2d'] as const

interface Argon2Engine extends Engine {
  hash(password: string, cost: Argon2Cost, signal?: AbortSignal): Promise<string>
}

/**
 * argon2id. Also verifies argon2i, argon2d and version 16, which are below any policy.
 * `@node-rs/argon2` selects code for the processor at run time and takes 0.4 of the time of `argon2`, which is prebuilt for any
 * x86-64 (`pnpm load engines`).
 */
export async function createArgon2(threads: Threads, native?: NativeEngine): Promise<Algorithm<Argon2Cost>> {
  const engines = await loadEngines(
    [() => nativeEngine(native), () => nodeRsEngine(threads), () => referenceEngine(threads)],
    knownAnswers,
  )
  return {
    family: 'argon2',
    engine: engines[0].name,
    recognizes(storedHash) {
      const stored = parseStoredHash(storedHash)
      return stored !== undefined && stored.algorithm !== 'bcrypt' && isPossible(stored) && isAffordable(stored)
    },
    algorithm: (storedHash) => variants.find((name) => storedHash.startsWith(`$${name}$`)) ?? 'other',
    hash: engines[0].hash,
    decoyHash,
    verify: (password, storedHash, signal) => verifyByFirst(engines, password, storedHash, signal),
  }
}

async function nativeEngine(native: NativeEngine | undefined): Promise<Argon2Engine> {
  if (native === undefined) throw new Error('it is not built, or turned off')
  return {
    name: NATIVE_NAME,
    hash: (password, cost, signal) => native.hash(password, argon2Setting(cost), { signal }),
    verify: (password, storedHash, signal) => native.verify(password, storedHash, { signal }),
  }
}

async function nodeRsEngine({ run }: Threads): Promise<Argon2Engine> {
  const { hash, verify } = await import('@node-rs/argon2')
  const argon2id = 2
  return {
    name: '@node-rs/argon2',
    hash: (password, { memoryKib, time, parallelism }) =>
      run(() => hash(password, { algorithm: argon2id, memoryCost: memoryKib, timeCost: time, parallelism })),
    verify: (password, storedHash) => run(() => verify(storedHash, password)),
  }
}

async function referenceEngine({ run }: Threads): Promise<Argon2Engine> {
  const { hash, verify, argon2id } = await import('argon2')
  return {
    name: 'argon2',
    hash: (password, { memoryKib, time, parallelism }) =>
      run(() => hash(password, { type: argon2id, memoryCost: memoryKib, timeCost: time, parallelism })),
    verify: (password, storedHash) => run(() => verify(storedHash, password)),
  }
}

function decoyHash({ memoryKib, time, parallelism }: Argon2Cost): string {
  const random = (bytes: number) => randomBytes(bytes).toString('base64').replace(/=+$/, '')
  return `$argon2id$v=19$m=${memoryKib},t=${time},p=${parallelism}$${random(16)}$${random(32)}`
}

/** From the reference implementation, with password and salt of its tests; with one lane and with several. */
const knownAnswers: KnownAnswer[] = [
  '$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$yrdGtGIZk/3JHsUHh5gLQUqQppLwvGjf4Z+cJbPLqew',
  '$argon2id$v=19$m=256,t=2,p=2$c29tZXNhbHRzb21lc2FsdA$wRLS7mudUUQT+AYkMYeVIYbo8Zysq4DyCoI9VJ8RHSw',
  '$argon2i$v=19$m=256,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$v1DTJpl9EsRIKW3SFzgsjRS88aGpPJC+3z7P2gMxfv8',
].map((storedHash) => ({ storedHash, password: 'password' }))

/** RFC 9106, 3.1: at least one pass, one lane, and eight blocks for each lane. */
function isPossible({ memoryKib, time, parallelism }: Argon2Cost): boolean {
  return time >= 1 && parallelism >= 1 && memoryKib >= 8 * parallelism
}

function isAffordable({ memoryKib, time, parallelism }: Argon2Cost): boolean {
  return memoryKib <= MEMORY_LIMIT_KIB && time <= TIME_LIMIT && parallelism <= PARALLELISM_LIMIT
}
