/**
 * Digests that are computed by programs instead of a library: crypt(3)'s SHA (Drepper, "Unix crypt using SHA-256 and SHA-512", 0.6),
 * phpass's portable hashes and yescrypt. They take milliseconds of JavaScript, so that they run on threads of their own (digest-threads.ts).
 */
import { hash } from 'node:crypto'
import { decodeCrypt64 } from './crypt64.js'
import { yescrypt } from './yescrypt-digest.js'

export type IteratedDigest =
  | { kind: 'sha-crypt'; digest: 'sha256' | 'sha512'; rounds: number; salt: string; password: string }
  | { kind: 'phpass'; digest: 'md5' | 'sha512'; rounds: number; salt: string; password: string }
  | { kind: 'yescrypt'; cost: number; blockSize: number; salt: string; password: string }
type Of<Kind> = Extract<IteratedDigest, { kind: Kind }>

export function computeDigest(request: IteratedDigest): Buffer {
  if (request.kind === 'yescrypt') return yescrypt(Buffer.from(request.password), decodeCrypt64(request.salt), request)
  return request.kind === 'sha-crypt' ? shaCrypt(request) : phpass(request)
}

/** phpass, and Drupal 7 with SHA-512: the digest of the digest and the password, again and again. */
function phpass({ digest, rounds, salt, password }: Of<'phpass'>): Buffer {
  const bytes = Buffer.from(password)
  let state = hash(digest, Buffer.concat([Buffer.from(salt), bytes]), 'buffer')
  const input = Buffer.concat([state, bytes])
  for (let round = 0; round < rounds; round++) {
    input.set(state)
    state = hash(digest, input, 'buffer')
  }
  return state
}

/** The names of the steps are those of the specification. */
function shaCrypt({ digest, rounds, salt, password }: Of<'sha-crypt'>): Buffer {
  const [key, saltBytes] = [Buffer.from(password), Buffer.from(salt)]
  const digestOf = (...parts: Buffer[]): Buffer => hash(digest, Buffer.concat(parts), 'buffer')
  const repeated = (block: Buffer, length: number): Buffer => Buffer.alloc(length, block)

  const b = digestOf(key, saltBytes, key)
  const choices: Buffer[] = []
  for (let left = key.length; left > 0; left >>= 1) choices.push(left & 1 ? b : key)
  const a = digestOf(key, saltBytes, repeated(b, key.length), ...choices)
  const p = repeated(digestOf(...Array<Buffer>(key.length).fill(key)), key.length)
  const s = repeated(digestOf(...Array<Buffer>(16 + (a[0] ?? 0)).fill(saltBytes)), saltBytes.length)

  let state = a
  const input = Buffer.alloc(state.length + s.length + 2 * p.length)
  for (let round = 0; round < rounds; round++) {
    let length = 0
    const add = (part: Buffer): void => {
      input.set(part, length)
      length += part.length
    }
    add(round % 2 === 1 ? p : state)
    if (round % 3 !== 0) add(s)
    if (round % 7 !== 0) add(p)
    add(round % 2 === 1 ? state : p)
    state = hash(digest, input.subarray(0, length), 'buffer')
  }
  return state
}
