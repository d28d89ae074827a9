/**
 * `@spillway/client/bcrypt`: a drop-in replacement of the package `bcrypt`, set up by the
 * environment.
 */
import { createBcrypt } from './drop-in/bcrypt.js'
import type { Bcrypt } from './drop-in/bcrypt-types.js'
import { close as closeShared, sharedPasswords } from './shared-passwords.js'

/** The functions of the package, and `close`. */
const bcrypt: Bcrypt & { close(): Promise<void> } = { ...createBcrypt(sharedPasswords), close: closeShared }

export const { genSaltSync, genSalt, hashSync, hash, compareSync, compare, getRounds, close } = bcrypt
export default bcrypt
