/** Entry point of the package: hashes off the application's process. Loads no hashing code here. */

import { openPasswords } from './application/create-passwords.js'
import type { Passwords, PasswordsOptions } from './application/types.js'

export { PasswordsError, type PasswordsErrorCode } from './application/passwords-error.js'
export type {
  BeginOptions,
  CallOptions,
  Capacity,
  ClientResponse,
  HashPolicy,
  Logger,
  Passwords,
  PasswordsOptions,
  Redeemed,
  RedeemOptions,
  VerifyOptions,
  WaitingAnswer,
} from './application/types.js'

/**
 * Hashes and verifies passwords: with `redis` and `sealKeys` by the workers of that queue, without
 * them in a process beside this one. Throws a TypeError or RangeError for invalid options. If Redis
 * or the process cannot be reached, the calls reject.
 */
export function createPasswords(options: PasswordsOptions = {}): Passwords {
  return openPasswords(options)
}
