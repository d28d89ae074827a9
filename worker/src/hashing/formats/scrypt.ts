/** scrypt (RFC 7914), as PHC strings, passlib, Django and Werkzeug write it. */
import { scrypt as derive, type ScryptOptions } from 'node:crypto'
import type { Verifier } from '../algorithm.js'
import type { KnownAnswer } from '../engine.js'
import type { NativeEngine } from '../native.js'
import type { Threads } from '../threads.js'
import { type DerivedKey, derivedKeyVerifier, KEY_BYTES } from './derived-key.js'

export interface ScryptHash extends DerivedKey {
  /** N, r and p of the RFC. */
  cost: number
  blockSize: number
  parallelization: number
}

/** The highest memory and work of a stored hash that are accepted anywhere: one bad row must not exhaust a worker. */
const MEMORY_LIMIT_BYTES = 128 * 1_024 * 1_024
/** N × r × p; OWASP's Password Storage Cheat Sheet gives 2^20. */
const WORK_LIMIT = 2 ** 22

const PHC = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,3}),p=(\d{1,3})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/
const DJANGO = /^scrypt\$(\d{1,8})\$([^$]{1,128})\$(\d{1,3})\$(\d{1,3})\$([A-Za-z0-9+/]+=*)$/
const WERKZEUG = /^scrypt:(\d{1,8}):(\d{1,3}):(\d{1,3})\$([^$]{1,128})\$([0-9a-f]+)$/

export interface ScryptLimits {
  threads: Threads
  /** The memory that one hash may take here. */
  memoryLimitBytes: number
}

export async function scrypt({
  threads,
  native,
  memoryLimitBytes,
}: ScryptLimits & { native: NativeEngine | undefined }): Promise<Verifier> {
  return await derivedKeyVerifier<ScryptHash>(threads, native, {
    family: 'scrypt',
    read,
    isAccepted: (hash) => isAccepted(hash, memoryLimitBytes),
    nativeSetting: ({ cost, blockSize, parallelization }) =>
      `$scrypt$ln=${Math.log2(cost)},r=${blockSize},p=${parallelization}`,
    derive: deriveKey,
    knownAnswers,
  })
}

/** By OpenSSL. */
const knownAnswers: KnownAnswer[] = [
  { password: 'password', storedHash: '$scrypt$ln=4,r=2,p=1$c2FsdA$NUJ4TjpnKfytPoMazeBlk1hjrFndx33caQQ7tV8aiDc' },
  { password: 'U*U', storedHash: '$scrypt$ln=4,r=2,p=1$TmFDbA$I3jXhrpz0gg3wlH51s4Tv3zUs1B8KQihag/WvIY+GRw' },
]

/** The key, by node:crypto. */
export function deriveKey(password: string, { salt, key, ...parameters }: ScryptHash): Promise<Buffer> {
  const options: ScryptOptions = { ...parameters, maxmem: 2 * memoryBytes(parameters) }
  return new Promise((resolve, reject) => {
    derive(password, salt, key.length, options, (error, derived) => (error ? reject(error) : resolve(derived)))
  })
}

function read(text: string): ScryptHash | undefined {
  const phc = PHC.exec(text)
  if (phc !== null) {
    const [, logCost, blockSize, parallelization, salt = '', key = ''] = phc
    return scryptHash(2 ** Number(logCost), blockSize, parallelization, base64(salt), base64(key))
  }
  const django = DJANGO.exec(text)
  if (django !== null) {
    const [, cost, salt = '', blockSize, parallelization, key = ''] = django
    return scryptHash(Number(cost), blockSize, parallelization, Buffer.from(salt), base64(key))
  }
  const [, cost, blockSize, parallelization, salt = '', key = ''] = WERKZEUG.exec(text) ?? []
  if (cost === undefined) return undefined
  return scryptHash(Number(cost), blockSize, parallelization, Buffer.from(salt), Buffer.from(key, 'hex'))
}

function base64(part: string): Buffer {
  return Buffer.from(part, 'base64')
}

function scryptHash(
  cost: number,
  blockSize: string | undefined,
  parallelization: string | undefined,
  salt: Buffer,
  key: Buffer,
): ScryptHash {
  return { cost, blockSize: Number(blockSize), parallelization: Number(parallelization), salt, key }
}

/** Whether the parameters are possible, and cost no more than a worker accepts. */
export function isAccepted(hash: ScryptHash, memoryLimitBytes: number): boolean {
  return isPossible(hash) && isAffordable(hash, Math.min(memoryLimitBytes, MEMORY_LIMIT_BYTES))
}

/** RFC 7914, 2: the cost is a power of two above 1. */
function isPossible({ cost, blockSize, parallelization, key }: ScryptHash): boolean {
  const isPowerOfTwo = cost > 1 && Number.isInteger(Math.log2(cost))
  return isPowerOfTwo && blockSize >= 1 && parallelization >= 1 && KEY_BYTES.includes(key.length)
}

function isAffordable(hash: ScryptHash, limitBytes: number): boolean {
  return memoryBytes(hash) <= limitBytes && hash.cost * hash.blockSize * hash.parallelization <= WORK_LIMIT
}

function memoryBytes({ cost, blockSize, parallelization }: Omit<ScryptHash, 'salt' | 'key'>): number {
  return 128 * blockSize * (cost + parallelization)
}
