/** PBKDF2 (RFC 8018, 5.2) with SHA-1, SHA-256 or SHA-512, as PHC strings, Django, passlib, Werkzeug and ASP.NET Core Identity write it. */
import { pbkdf2 as derive } from 'node:crypto'
import { promisify } from 'node:util'
import type { Verifier } from '../algorithm.js'
import type { KnownAnswer } from '../engine.js'
import type { NativeEngine } from '../native.js'
import type { Threads } from '../threads.js'
import { type DerivedKey, derivedKeyVerifier, KEY_BYTES } from './derived-key.js'

const deriveKey = promisify(derive)

interface Pbkdf2Hash extends DerivedKey {
  digest: string
  iterations: number
}

/** The highest work of a stored hash that is accepted, in iterations for each block of the key: one bad row must not stall a worker. */
const WORK_LIMIT = 2_000_000

const PHC = /^\$pbkdf2-(sha1|sha256|sha512)\$i=(\d{1,8})(?:,l=\d+)?\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/
const DJANGO = /^pbkdf2_(sha1|sha256|sha512)\$(\d{1,8})\$([^$]{1,128})\$([A-Za-z0-9+/]+=*)$/
/** Its base64 has dots in place of pluses. */
const PASSLIB = /^\$pbkdf2(?:-(sha256|sha512))?\$(\d{1,8})\$([A-Za-z0-9./]+)\$([A-Za-z0-9./]+)$/
const WERKZEUG = /^pbkdf2:(sha1|sha256|sha512):(\d{1,8})\$([^$]{1,128})\$([0-9a-f]+)$/
const BASE64 = /^[A-Za-z0-9+/]{64,256}={0,2}$/

export async function pbkdf2(threads: Threads, native?: NativeEngine): Promise<Verifier> {
  return await derivedKeyVerifier<Pbkdf2Hash>(threads, native, {
    family: 'pbkdf2',
    read,
    isAccepted,
    nativeSetting: ({ digest, iterations }) => (digest === 'sha256' ? `$pbkdf2-sha256$i=${iterations}` : undefined),
    derive: (password, { salt, iterations, key, digest }) => deriveKey(password, salt, iterations, key.length, digest),
    knownAnswers,
  })
}

/** RFC 7914, 11, and by OpenSSL. */
const knownAnswers: KnownAnswer[] = [
  {
    password: 'passwd',
    storedHash:
      '$pbkdf2-sha256$i=1$c2FsdA$VawEblbjCJ/sFpHCJUS2BflBhSFt3gRl5oudV8INrLxJypzM8Xm2RZkWZLOdd+8xfHG4RbHjC9UJESBB06GXgw',
  },
  { password: 'password', storedHash: '$pbkdf2-sha256$i=20$c2FsdA$g+sQC2o6l18P4//NwkGYUjIVTmhova8bJhzLGP7kyQg' },
]

function read(text: string): Pbkdf2Hash | undefined {
  return readParts(text) ?? readAspNet(text)
}

function readParts(text: string): Pbkdf2Hash | undefined {
  const base64 = (part: string) => Buffer.from(part.replaceAll('.', '+'), 'base64')
  const [, digest = 'sha1', iterations, salt = '', key = ''] =
    PHC.exec(text) ?? DJANGO.exec(text) ?? PASSLIB.exec(text) ?? WERKZEUG.exec(text) ?? []
  if (iterations === undefined) return undefined
  // Django and Werkzeug use the salt as the text that it is.
  const isSaltText = text.startsWith('pbkdf2')
  return {
    digest,
    iterations: Number(iterations),
    salt: isSaltText ? Buffer.from(salt) : base64(salt),
    key: text.startsWith('pbkdf2:') ? Buffer.from(key, 'hex') : base64(key),
  }
}

/** ASP.NET Core Identity: a byte for the version; in version 3 the function, the iterations and the length of the salt as big-endian words. */
function readAspNet(text: string): Pbkdf2Hash | undefined {
  if (!BASE64.test(text)) return undefined
  const bytes = Buffer.from(text, 'base64')
  if (bytes[0] === 0 && bytes.length === 49) {
    return { digest: 'sha1', iterations: 1_000, salt: bytes.subarray(1, 17), key: bytes.subarray(17) }
  }
  const digest = ['sha1', 'sha256', 'sha512'][bytes.readUInt32BE(1)]
  if (bytes[0] !== 1 || digest === undefined) return undefined
  const keyAt = 13 + bytes.readUInt32BE(9)
  return { digest, iterations: bytes.readUInt32BE(5), salt: bytes.subarray(13, keyAt), key: bytes.subarray(keyAt) }
}

function isAccepted({ digest, iterations, key }: Pbkdf2Hash): boolean {
  const blockBytes = { sha1: 20, sha256: 32 }[digest] ?? 64
  const isPossible = iterations >= 1 && KEY_BYTES.includes(key.length)
  return isPossible && iterations * Math.ceil(key.length / blockBytes) <= WORK_LIMIT
}
