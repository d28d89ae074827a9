/**
 * Digests without a library: crypt(3)'s SHA (Drepper, "Unix crypt using SHA-256 and SHA-512", 0.6),
 * its MD5, phpass's portable hashes, and plain digests. Many rounds
 * take milliseconds of JavaScript, on threads of their own (digests.ts).
 */
import { createHmac, hash } from 'node:crypto'

export const plainDigests = ['md5', 'sha1', 'sha256', 'sha384', 'sha512'] as const
export type PlainDigest = (typeof plainDigests)[number]

export interface SaltedDigest {
  digest: PlainDigest
  salt: Uint8Array
  /** The place of the salt; `key`: it is the key of an HMAC. */
  place: 'before' | 'after' | 'key'
  /** What each further round reads after the digest of the round before. */
  behind?: 'input'
}

interface PlainProgram extends SaltedDigest {
  kind: 'plain'
  /** The number of rounds, including the first. */
  rounds: number
}

export type DigestProgram =
  | PlainProgram
  | { kind: 'sha-crypt'; digest: 'sha256' | 'sha512'; rounds: number; salt: string }
  | { kind: 'md5-crypt'; magic: '$1$' | '$apr1$'; salt: string }
  | { kind: 'phpass'; digest: 'md5' | 'sha512'; rounds: number; salt: string }
type Of<Kind> = Extract<DigestProgram, { kind: Kind }>

export interface DigestRequest {
  program: DigestProgram
  password: Uint8Array
}

/** The digest, its bytes in the order in which they are written. */
export function computeDigest({ program, password: bytes }: DigestRequest): Buffer {
  const password = Buffer.from(bytes)
  switch (program.kind) {
    case 'plain':
      return plain(program, password)
    case 'sha-crypt':
      return shaCrypt(program, password)
    case 'md5-crypt':
      return md5Crypt(program, password)
    case 'phpass':
      return phpass(program, password)
  }
}

/** The number of rounds, of one digest each. */
export function roundsOf(program: DigestProgram): number {
  return program.kind === 'md5-crypt' ? MD5_ROUNDS : program.rounds
}

/** Whether each round reads the whole password, so that its time grows with the length. */
export function readsPassword(program: DigestProgram): boolean {
  return program.kind !== 'plain' || program.behind === 'input'
}

function plain({ digest, salt, place, rounds, behind }: PlainProgram, password: Buffer): Buffer {
  const input = Buffer.concat(place === 'before' ? [salt, password] : [password, salt])
  let state = place === 'key' ? createHmac(digest, salt).update(password).digest() : hash(digest, input, 'buffer')
  for (let round = 1; round < rounds; round++)
    state = hash(digest, behind === 'input' ? Buffer.concat([state, input]) : state, 'buffer')
  return state
}

/** phpass, and Drupal 7 with SHA-512: the digest of the digest and the password, repeated. */
function phpass({ digest, rounds, salt }: Of<'phpass'>, password: Buffer): Buffer {
  let state = hash(digest, Buffer.concat([Buffer.from(salt), password]), 'buffer')
  const input = Buffer.concat([state, password])
  for (let round = 0; round < rounds; round++) {
    input.set(state)
    state = hash(digest, input, 'buffer')
  }
  return state
}

/** Step names are from the specification. */
function shaCrypt({ digest, rounds, salt }: Of<'sha-crypt'>, key: Buffer): Buffer {
  const saltBytes = Buffer.from(salt)
  const sumOf = (...parts: Buffer[]): Buffer => hash(digest, Buffer.concat(parts), 'buffer')
  const repeated = (block: Buffer, length: number): Buffer => Buffer.alloc(length, block)

  const b = sumOf(key, saltBytes, key)
  const choices: Buffer[] = []
  for (let left = key.length; left > 0; left >>= 1) choices.push(left & 1 ? b : key)
  const a = sumOf(key, saltBytes, repeated(b, key.length), ...choices)
  const p = repeated(sumOf(...Array<Buffer>(key.length).fill(key)), key.length)
  const s = repeated(sumOf(...Array<Buffer>(16 + (a[0] ?? 0)).fill(saltBytes)), saltBytes.length)
  return inOrder(alternate(digest, rounds, a, p, s), orders[digest])
}

/** The rounds of crypt(3)'s SHA and MD5: the digest of state, password and salt in turns. */
function alternate(digest: PlainDigest, rounds: number, first: Buffer, password: Buffer, salt: Buffer): Buffer {
  let state = first
  const input = Buffer.alloc(state.length + salt.length + 2 * password.length)
  for (let round = 0; round < rounds; round++) {
    let length = 0
    const add = (part: Buffer): void => {
      input.set(part, length)
      length += part.length
    }
    add(round % 2 === 1 ? password : state)
    if (round % 3 !== 0) add(salt)
    if (round % 7 !== 0) add(password)
    add(round % 2 === 1 ? state : password)
    state = hash(digest, input.subarray(0, length), 'buffer')
  }
  return state
}

const MD5_ROUNDS = 1_000

/** Poul-Henning Kamp's MD5, and Apache's variant with another name in it. */
function md5Crypt({ magic, salt }: Of<'md5-crypt'>, password: Buffer): Buffer {
  const saltBytes = Buffer.from(salt)
  const b = hash('md5', Buffer.concat([password, saltBytes, password]), 'buffer')
  const parts = [password, Buffer.from(magic), saltBytes, Buffer.alloc(password.length, b)]
  for (let left = password.length; left > 0; left >>= 1)
    parts.push(left & 1 ? Buffer.from([0]) : password.subarray(0, 1))
  const a = hash('md5', Buffer.concat(parts), 'buffer')
  return inOrder(alternate('md5', MD5_ROUNDS, a, password, saltBytes), orders.md5)
}

function inOrder(bytes: Buffer, order: readonly number[]): Buffer {
  return Buffer.from(order.map((at) => bytes[at] ?? 0))
}

type Group = [number, number, number]

/** Order in which the bytes of a digest are written: groups of three, then the rest. */
const orders = {
  md5: [...groups([12, 6, 0], 4, ([a, b, c]) => [a + 1, b + 1, c + 1]), 5, 10, 4, 11],
  sha256: [...groups([20, 10, 0], 10, ([a, b, c]) => [b + 1, c + 1, a + 1]), 30, 31],
  sha512: [...groups([42, 21, 0], 21, ([a, b, c]) => [c + 1, a + 1, b + 1]), 63],
}

function groups(first: Group, count: number, next: (group: Group) => Group): number[] {
  const order: number[] = []
  let group = first
  for (let n = 0; n < count; n++) {
    order.push(...group)
    group = next(group)
  }
  return order
}

// The base64 of crypt(3) and phpass: not the alphabet of RFC 4648, and the lowest six bits first.

const ALPHABET = './0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

export function encodeCrypt64(bytes: Uint8Array): string {
  let text = ''
  let [bits, held] = [0, 0]
  for (const byte of bytes) {
    bits |= byte << held
    for (held += 8; held >= 6; held -= 6) {
      text += ALPHABET[bits & 0x3f]
      bits >>= 6
    }
  }
  return held > 0 ? text + ALPHABET[bits & 0x3f] : text
}

/** The bytes of a text of the alphabet. Some bits of the last character may be left over. */
export function decodeCrypt64(text: string): Buffer {
  const bytes: number[] = []
  let [bits, held] = [0, 0]
  for (const character of text) {
    bits |= crypt64Digit(character) << held
    held += 6
    if (held < 8) continue
    bytes.push(bits & 0xff)
    bits >>= 8
    held -= 8
  }
  return Buffer.from(bytes)
}

/** The number that a character stands for; -1 for a character outside the alphabet. */
export function crypt64Digit(character: string): number {
  return character === '' ? -1 : ALPHABET.indexOf(character)
}
