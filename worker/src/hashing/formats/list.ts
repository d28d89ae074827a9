/**
 * Formats of other systems, which are verified and never made: an account gets a hash of the policy at its next login. To add one,
 * write a Verifier in a file of its own and name it here.
 */
import type { Verifier } from '../algorithm.js'
import type { NativeEngine } from '../native.js'
import type { Algorithms } from '../policy.js'
import type { Threads } from '../threads.js'
import { bcrypt2x } from './bcrypt-2x.js'
import { bcryptOfDigest } from './bcrypt-of-digest.js'
import { createDigestThreads } from './digest-threads.js'
import type { FirebaseProject } from './firebase-project.js'
import { firebaseScrypt } from './firebase-scrypt.js'
import { pbkdf2 } from './pbkdf2.js'
import { phpass } from './phpass.js'
import { prefixed } from './prefixed.js'
import { saltAndKey } from './salt-and-key.js'
import { saltedSha } from './salted-sha.js'
import { scrypt } from './scrypt.js'
import { shaCrypt } from './sha-crypt.js'
import { wrapped } from './wrapped.js'
import { yescrypt } from './yescrypt.js'

export interface FormatOptions {
  threads: Threads
  /** Some formats build on these. */
  algorithms: Algorithms
  native: NativeEngine | undefined
  firebase: FirebaseProject | undefined
  /** The memory that one hash may take. */
  memoryLimitBytes: number
}

export async function foreignFormats(options: FormatOptions): Promise<Verifier[]> {
  const { threads, algorithms, native, firebase, memoryLimitBytes } = options
  const { argon2, bcrypt } = algorithms
  const compute = createDigestThreads(threads)
  const scryptVerifier = await scrypt({ threads, native, memoryLimitBytes })
  return [
    ...[prefixed(argon2), prefixed(bcrypt), bcryptOfDigest(bcrypt), bcrypt2x(bcrypt), wrapped(argon2)],
    ...[await pbkdf2(threads, native), scryptVerifier, saltAndKey(scryptVerifier)],
    ...[saltedSha, shaCrypt(compute), phpass(compute), yescrypt(compute, memoryLimitBytes)],
    ...(firebase ? [firebaseScrypt({ threads, memoryLimitBytes, ...firebase })] : []),
  ]
}
