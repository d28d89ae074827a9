/**
 * `@spillway/client/argon2`: a drop-in replacement of the package `argon2`, set up by the
 * environment.
 */
import { createArgon2 } from './drop-in/argon2.js'
import type { Argon2 } from './drop-in/argon2-types.js'
import { close as closeShared, sharedPasswords } from './shared-passwords.js'

export type { HashOptions, HashOptions as Options, VerifyOptions } from './drop-in/argon2-types.js'

/** The functions and constants of the package, and `close`. */
const argon2: Argon2 & { close(): Promise<void> } = { ...createArgon2(sharedPasswords), close: closeShared }

export const { argon2d, argon2i, argon2id, hash, needsRehash, verify, close } = argon2
export default argon2
