/** Salted SHA digests of LDAP directories (RFC 2307): `{SSHA}` and its successors. Too fast to keep; each login replaces one. */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { Verifier } from '../algorithm.js'

const SCHEME = /^\{SSHA(256|384|512)?\}([A-Za-z0-9+/]{32,256}={0,2})$/
const DIGEST_BYTES: Record<string, number> = { sha1: 20, sha256: 32, sha384: 48, sha512: 64 }
const SALT_MIN_BYTES = 4
const SALT_MAX_BYTES = 64

interface SaltedSha {
  algorithm: string
  digest: Buffer
  salt: Buffer
}

export const saltedSha: Verifier = {
  family: 'ssha',
  engine: 'node:crypto',
  algorithm: () => 'ssha',
  recognizes: (storedHash) => read(storedHash) !== undefined,
  async verify(password, storedHash) {
    const hash = read(storedHash)
    if (hash === undefined) return false
    return timingSafeEqual(createHash(hash.algorithm).update(password).update(hash.salt).digest(), hash.digest)
  },
}

function read(text: string): SaltedSha | undefined {
  const [, bits = '1', base64] = SCHEME.exec(text) ?? []
  const length = DIGEST_BYTES[`sha${bits}`]
  if (base64 === undefined || length === undefined) return undefined
  const bytes = Buffer.from(base64, 'base64')
  const salt = bytes.subarray(length)
  if (salt.length < SALT_MIN_BYTES || salt.length > SALT_MAX_BYTES) return undefined
  return { algorithm: `sha${bits}`, digest: bytes.subarray(0, length), salt }
}
