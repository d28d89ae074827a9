/**
 * `@spillway/client/bcryptjs`: a drop-in replacement of the package `bcryptjs`, set up by the
 * environment.
 */
import { createBcryptjs } from './drop-in/bcryptjs.js'
import type { Bcryptjs } from './drop-in/bcryptjs-types.js'
import { close as closeShared, sharedPasswords } from './shared-passwords.js'

/** The functions of the package, and `close`. */
const bcryptjs: Bcryptjs & { close(): Promise<void> } = { ...createBcryptjs(sharedPasswords), close: closeShared }

export const { setRandomFallback, genSaltSync, genSalt, hashSync, hash, compareSync, compare, close } = bcryptjs
export const { getRounds, getSalt, truncates, encodeBase64, decodeBase64 } = bcryptjs
export default bcryptjs
