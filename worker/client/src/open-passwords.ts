/** Opens passwords with the hashing program of this package. The package ships this module as one file, which all entry points share. */
import { createPasswordsWith, type ExactPasswords } from './application/create-passwords.js'
import type { PasswordsOptions } from './application/types.js'

/** The program of the process beside an application. It stands beside this module in the package. */
const HASHING_PROGRAM = new URL('./hashing-program.cjs', import.meta.url)

export function openPasswords(options: PasswordsOptions): ExactPasswords {
  return createPasswordsWith(HASHING_PROGRAM, options)
}
