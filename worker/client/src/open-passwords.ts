/** Opens passwords with the hashing program of this package. The package ships this module as one file, which all entry points share. */
import { loadInPlace } from './application/beside/in-place.js'
import { createPasswordsWith, type ExactPasswords } from './application/create-passwords.js'
import type { PasswordsOptions } from './application/types.js'

/** The program of the process beside an application. It stands beside this module in the package. */
const HASHING_PROGRAM = new URL('./hashing-program.cjs', import.meta.url)

// Jest loads nothing once a test has ended, and a test may have left a call without await.
if (process.env.JEST_WORKER_ID) {
  try {
    loadInPlace(HASHING_PROGRAM)
  } catch {
    // The calls tell.
  }
}

export function openPasswords(options: PasswordsOptions): ExactPasswords {
  const { inProcess = isUnderTest(process.env) } = options
  return createPasswordsWith(HASHING_PROGRAM, { ...options, inProcess })
}

/** Jest and Vitest run each file of tests in a process or thread of its own, and would start one beside each. */
function isUnderTest({ JEST_WORKER_ID, VITEST }: NodeJS.ProcessEnv): boolean {
  return Boolean(JEST_WORKER_ID || VITEST)
}
