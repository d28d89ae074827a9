/**
 * bcrypt of a digest of the password, so that passwords longer than 72 bytes count whole: `bcrypt_sha256` of Django and of passlib,
 * and WordPress since 6.8.
 */
import { createHash, createHmac } from 'node:crypto'
import type { Verifier } from '../algorithm.js'

/** A stored hash as bcrypt writes it, and the text that it is a hash of. */
interface Inner {
  storedHash: string
  digest(password: string): string
}

const BCRYPT = String.raw`\$2[aby]\$\d{2}\$[./A-Za-z0-9]{53}`
const DJANGO = new RegExp(`^bcrypt_sha256\\$(${BCRYPT})$`)
const PASSLIB_V1 = /^\$bcrypt-sha256\$(2[aby]),(\d{1,2})\$([./A-Za-z0-9]{22})\$([./A-Za-z0-9]{31})$/
const PASSLIB_V2 = /^\$bcrypt-sha256\$v=2,t=(2[aby]),r=(\d{1,2})\$([./A-Za-z0-9]{22})\$([./A-Za-z0-9]{31})$/
const WORDPRESS = new RegExp(`^\\$wp(${BCRYPT})$`)

export function bcryptOfDigest(bcrypt: Verifier): Verifier {
  return {
    ...bcrypt,
    recognizes(storedHash) {
      const inner = read(storedHash)
      return inner !== undefined && bcrypt.recognizes(inner.storedHash)
    },
    async verify(password, storedHash, signal) {
      const inner = read(storedHash)
      return inner !== undefined && (await bcrypt.verify(inner.digest(password), inner.storedHash, signal))
    },
  }
}

function read(text: string): Inner | undefined {
  const [, django] = DJANGO.exec(text) ?? []
  if (django !== undefined) return { storedHash: django, digest: (password) => sha256(password).toString('hex') }
  const v1 = passlib(PASSLIB_V1.exec(text))
  if (v1 !== undefined) return { ...v1, digest: (password) => sha256(password).toString('base64') }
  const v2 = passlib(PASSLIB_V2.exec(text))
  if (v2 !== undefined) return { ...v2, digest: (password) => hmac('sha256', v2.salt, password) }
  const [, wordpress] = WORDPRESS.exec(text) ?? []
  // WordPress trims the password when it makes the hash and when it verifies it.
  if (wordpress !== undefined)
    return { storedHash: wordpress, digest: (password) => hmac('sha384', 'wp-sha384', trim(password)) }
  return undefined
}

/** Puts bcrypt's usual text together from passlib's parts. */
function passlib(match: RegExpExecArray | null): { storedHash: string; salt: string } | undefined {
  const [, version, cost, salt, digest] = match ?? []
  if (cost === undefined || salt === undefined) return undefined
  return { storedHash: `$${version}$${cost.padStart(2, '0')}$${salt}${digest}`, salt }
}

function sha256(password: string): Buffer {
  return createHash('sha256').update(password).digest()
}

function hmac(digest: string, key: string, password: string): string {
  return createHmac(digest, key).update(password).digest('base64')
}

/** The characters that PHP's trim() removes. */
function trim(password: string): string {
  return password.replace(/^[ \t\n\r\0\v]+|[ \t\n\r\0\v]+$/g, '')
}
