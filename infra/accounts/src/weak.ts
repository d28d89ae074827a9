// Plain digests, salted or not: too fast to rest in a table. Each is hashed with argon2id by the workers, and the account stored with that
// (worker/src/hashing/formats/wrapped.ts).
import type { Passwords } from '@spillway/client'
import { UserError } from '@spillway/local/processes/command-line'
import { plainRecipe } from '@spillway/worker/hashing/formats/plain'
import { type Wrapping, wrappingOf } from '@spillway/worker/hashing/formats/wrapped'
import { type PlainDigest, plainDigests } from '@spillway/worker/hashing/methods/digest-programs'
import type { Account } from './account.ts'

/** Digests in hexadecimal and nothing else, which do not say what they are. */
export interface BareDigest {
  digest: PlainDigest
  /** Where the salt is, if there is one: before or after the password, or that it is the key of an HMAC. */
  place: 'before' | 'after' | 'key'
}

/** Throws a UserError for any other digest. */
export function bareDigest(name: string | undefined, salt: string | undefined): BareDigest | undefined {
  if (name === undefined) return undefined
  const digest = plainDigests.find((known) => known === name)
  if (digest === undefined) throw new UserError(`--weak takes one of ${plainDigests.join(', ')}, not "${name}".`)
  if (salt !== undefined && salt !== 'before' && salt !== 'after' && salt !== 'key')
    throw new UserError(`--salt takes before, after or key, not "${salt}".`)
  return { digest, place: salt ?? 'before' }
}

/** How to wrap a text that is such a digest; undefined for any other. `too-long` where its salt is. */
export function wrappingOfBare(of: BareDigest, text: string, salt: Buffer): Wrapping | 'too-long' | undefined {
  const recipe = /^([0-9a-f]+|[0-9A-F]+)$/.test(text)
    ? plainRecipe({ digest: of.digest, place: of.place, salt }, text.toLowerCase(), 'hex')
    : undefined
  return recipe && (wrappingOf([recipe]) ?? 'too-long')
}

export interface WeakAccount {
  account: Omit<Account, 'passwordHash'>
  wrapping: Wrapping
}

/** Has the digest hashed. Rejects with a PasswordsError. */
export async function wrapped(passwords: Passwords, { account, wrapping }: WeakAccount): Promise<Account> {
  return { ...account, passwordHash: wrapping.store(await passwords.hash(wrapping.text)) }
}
