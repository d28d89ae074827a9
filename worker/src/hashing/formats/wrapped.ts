/**
 * Weak digests of other systems inside argon2: `$wrapped-<digest>$<before|after>$<salt>$argon2id$…`, the argon2 hash of the digest in
 * hexadecimal. So no weak digest rests in the table; the next login replaces the whole.
 */
import { createHash } from 'node:crypto'
import type { Verifier } from '../algorithm.js'

export const wrappedDigests = ['md5', 'sha1', 'sha256'] as const
export type WrappedDigest = (typeof wrappedDigests)[number]

/** Of the salt, in base64 up to 128 characters: longer ones are refused at import, because none is read. */
export const SALT_MAX_BYTES = 96

export interface WrappedSetting {
  digest: WrappedDigest
  /** Whether the salt came before the password, or after it. */
  saltFirst: boolean
  /** As the text that it was; empty for none. */
  salt: string
}

const PATTERN = /^\$wrapped-(md5|sha1|sha256)\$(before|after)\$([A-Za-z0-9_-]{0,128})(\$argon2id\$.+)$/

/** The stored hash. */
export function wrap({ digest, saltFirst, salt }: WrappedSetting, outer: string): string {
  return `$wrapped-${digest}$${saltFirst ? 'before' : 'after'}$${Buffer.from(salt).toString('base64url')}${outer}`
}

/** @param argon2 the verifier of the outer hash */
export function wrapped(argon2: Verifier): Verifier {
  return {
    ...argon2,
    algorithm: () => 'wrapped',
    recognizes(storedHash) {
      const outer = read(storedHash)?.outer
      return outer !== undefined && argon2.recognizes(outer)
    },
    async verify(password, storedHash, signal) {
      const hash = read(storedHash)
      if (hash === undefined) return false
      const { digest, saltFirst, salt, outer } = hash
      const inner = createHash(digest)
      for (const part of saltFirst ? [salt, password] : [password, salt]) inner.update(part)
      return await argon2.verify(inner.digest('hex'), outer, signal)
    },
  }
}

function read(text: string) {
  const [, name, place, encoded = '', outer] = PATTERN.exec(text) ?? []
  const digest = wrappedDigests.find((known) => known === name)
  if (digest === undefined || outer === undefined) return undefined
  return { digest, saltFirst: place === 'before', salt: Buffer.from(encoded, 'base64url'), outer }
}
