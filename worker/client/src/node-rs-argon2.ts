/**
 * `@spillway/client/node-rs-argon2`: a drop-in replacement of the package `@node-rs/argon2`, set up
 * by the environment.
 */
import { createNodeRsArgon2 } from './drop-in/node-rs.js'
import type { NodeRsArgon2 } from './drop-in/node-rs-types.js'
import { close as closeShared, sharedPasswords } from './shared-passwords.js'

export type { Options } from './drop-in/node-rs-types.js'

/** The functions and constants of the package, and `close`. */
const argon2: NodeRsArgon2 & { close(): Promise<void> } = { ...createNodeRsArgon2(sharedPasswords), close: closeShared }

export const { Algorithm, Version, hash, hashSync, hashRaw, hashRawSync, verify, verifySync, parseOptions, close } =
  argon2
export default argon2
