/**
 * Formats of other systems, which are verified and never made: an account gets a hash of the policy at its next login. To add one,
 * write a Verifier in a file of its own and name it here.
 */
import type { Verifier } from '../algorithm.js'
import type { NativeEngine } from '../native.js'
import type { Threads } from '../threads.js'
import { bcryptOfDigest } from './bcrypt-of-digest.js'
import { createDigestThreads } from './digest-threads.js'
import { pbkdf2 } from './pbkdf2.js'
import { phpass } from './phpass.js'
import { prefixed } from './prefixed.js'
import { saltedSha } from './salted-sha.js'
import { scrypt } from './scrypt.js'
import { shaCrypt } from './sha-crypt.js'
import { wrapped } from './wrapped.js'

/** `known` are the verifiers of argon2 and bcrypt, on which some of these formats build. */
export async function foreignFormats(
  threads: Threads,
  known: readonly Verifier[],
  native: NativeEngine | undefined,
): Promise<Verifier[]> {
  const bcrypt = known.filter(({ family }) => family === 'bcrypt')
  const argon2 = known.filter(({ family }) => family === 'argon2')
  const compute = createDigestThreads(threads)
  return [
    ...[...known.map(prefixed), ...bcrypt.map(bcryptOfDigest), ...argon2.map(wrapped)],
    ...(await Promise.all([pbkdf2(threads, native), scrypt(threads, native)])),
    ...[saltedSha, shaCrypt(compute), phpass(compute)],
  ]
}
