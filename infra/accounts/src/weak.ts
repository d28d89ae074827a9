// Plain and salted MD5, SHA-1 and SHA-256: too fast to rest in a table. Each is hashed with argon2id by the workers, and the account stored
// with that (worker/src/hashing/formats/wrapped.ts).
import type { Passwords } from '@spillway/client'
import { UserError } from '@spillway/local/processes/user-error'
import { type WrappedDigest, wrap, wrappedDigests } from '@spillway/worker/hashing/formats/wrapped'
import type { Account } from './account.ts'

const digestBytes: Record<WrappedDigest, number> = { md5: 16, sha1: 20, sha256: 32 }

export interface WeakDigest {
  digest: WrappedDigest
  /** Where the salt is, before or after the password. */
  saltFirst: boolean
  /** The digest that a text holds, in hexadecimal; undefined for any other text. */
  read(text: string): Buffer | undefined
}

/** Throws a UserError for a digest that is none of these. */
export function weakDigest(name: string | undefined, salt: string | undefined): WeakDigest | undefined {
  if (name === undefined) return undefined
  const digest = wrappedDigests.find((known) => known === name)
  if (digest === undefined) throw new UserError(`--weak takes one of ${wrappedDigests.join(', ')}, not "${name}".`)
  if (salt !== undefined && salt !== 'before' && salt !== 'after')
    throw new UserError(`--salt takes before or after, not "${salt}".`)
  const pattern = new RegExp(`^[0-9a-f]{${2 * digestBytes[digest]}}$`, 'i')
  return {
    digest,
    saltFirst: salt !== 'after',
    read: (text) => (pattern.test(text) ? Buffer.from(text, 'hex') : undefined),
  }
}

export interface WeakAccount {
  account: Omit<Account, 'passwordHash'>
  digest: Buffer
  salt: string
}

/** Has the digest hashed. Rejects with a PasswordsError. */
export async function wrapped(
  passwords: Passwords,
  { digest: name, saltFirst }: WeakDigest,
  { account, digest, salt }: WeakAccount,
): Promise<Account> {
  const outer = await passwords.hash(digest.toString('hex'))
  return { ...account, passwordHash: wrap({ digest: name, saltFirst, salt }, outer) }
}
