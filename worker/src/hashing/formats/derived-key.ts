/**
 * Verifiers of formats whose key is derived from password and salt: by the native engine where that knows the function, otherwise by
 * node:crypto.
 */
import { timingSafeEqual } from 'node:crypto'
import { unpadded } from '@spillway/client/protocol/base64'
import type { Verifier } from '../algorithm.js'
import type { AlgorithmName } from '../algorithm-name.js'
import { type Engine, type KnownAnswer, loadEngines, verifyByFirst } from '../engine.js'
import { NATIVE_NAME, type NativeEngine } from '../native.js'
import type { Threads } from '../threads.js'

/** Other lengths are of texts that were cut off: a shorter key is the beginning of a longer one, and would still match. */
export const KEY_BYTES = [16, 20, 24, 32, 48, 64]

export interface DerivedKey {
  salt: Buffer
  key: Buffer
}

export interface Derivation<Hash extends DerivedKey> {
  family: AlgorithmName
  /** Reads a stored hash, whatever its cost. */
  read(storedHash: string): Hash | undefined
  isAccepted(hash: Hash): boolean
  /** The native engine's setting without the salt, as a PHC string begins; undefined for what it does not know. */
  nativeSetting(hash: Hash): string | undefined
  /** The key, by node:crypto. */
  derive(password: string, hash: Hash): Promise<Buffer>
  knownAnswers: readonly KnownAnswer[]
}

interface KeyEngine<Hash> extends Engine {
  takes(hash: Hash): boolean
}

export async function derivedKeyVerifier<Hash extends DerivedKey>(
  threads: Threads,
  native: NativeEngine | undefined,
  derivation: Derivation<Hash>,
): Promise<Verifier> {
  const { family, read, isAccepted, knownAnswers } = derivation
  const engines = await loadEngines(
    [() => nativeEngine(native, derivation), () => nodeEngine(threads, derivation)],
    knownAnswers,
  )
  return {
    family,
    engine: engines[0].name,
    algorithm: () => family,
    recognizes(storedHash) {
      const hash = read(storedHash)
      return hash !== undefined && isAccepted(hash)
    },
    async verify(password, storedHash, signal) {
      const hash = read(storedHash)
      if (hash === undefined) return false
      const able = engines.filter(({ takes }) => takes(hash))
      return await verifyByFirst(able, password, storedHash, signal)
    },
  }
}

async function nativeEngine<Hash extends DerivedKey>(
  native: NativeEngine | undefined,
  { read, nativeSetting }: Derivation<Hash>,
): Promise<KeyEngine<Hash>> {
  if (native === undefined) throw new Error('it is not built, or turned off')
  return {
    name: NATIVE_NAME,
    takes: (hash) => nativeSetting(hash) !== undefined,
    async verify(password, storedHash, signal) {
      const hash = read(storedHash)
      if (hash === undefined) return false
      const phc = [nativeSetting(hash), unpadded(hash.salt), unpadded(hash.key)].join('$')
      return await native.verify(password, phc, { signal })
    },
  }
}

async function nodeEngine<Hash extends DerivedKey>(
  { run }: Threads,
  { read, derive }: Derivation<Hash>,
): Promise<KeyEngine<Hash>> {
  return {
    name: 'node:crypto',
    takes: () => true,
    async verify(password, storedHash) {
      const hash = read(storedHash)
      return hash !== undefined && timingSafeEqual(await run(() => derive(password, hash)), hash.key)
    },
  }
}
