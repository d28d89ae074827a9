/**
 * `@spillway/client/node-rs-bcrypt`: a drop-in replacement of the package `@node-rs/bcrypt`, set up
 * by the environment.
 */
import { createNodeRsBcrypt } from './drop-in/node-rs.js'
import type { NodeRsBcrypt } from './drop-in/node-rs-types.js'
import { close as closeShared, sharedPasswords } from './shared-passwords.js'

/** The functions of the package, and `close`. */
const bcrypt: NodeRsBcrypt & { close(): Promise<void> } = { ...createNodeRsBcrypt(sharedPasswords), close: closeShared }

export const { DEFAULT_COST, genSaltSync, genSalt, hashSync, hash, verifySync, verify, compareSync, compare } = bcrypt
export const { close } = bcrypt
export default bcrypt
