/** Opens passwords with the hashing program of this package. The package ships this module as one file, which all entry points share. */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { loadInPlace } from './application/beside/in-place.js'
import { createPasswordsWith, type ExactPasswords } from './application/create-passwords.js'
import type { PasswordsOptions } from './application/types.js'

const PROGRAM = './hashing-program.cjs'
const HASHING_PROGRAM = findProgram()

/**
 * The program of the process beside an application stands beside this module in the package. Where a bundler included this module in
 * another file, it is found in the installed package. Otherwise the first call rejects with `not_installed`.
 */
function findProgram(): URL {
  const beside = new URL(PROGRAM, import.meta.url)
  if (existsSync(beside)) return beside
  for (const from of [import.meta.url, pathToFileURL(join(process.cwd(), 'any'))]) {
    try {
      const installed = createRequire(from).resolve('@spillway/client/package.json')
      return new URL(PROGRAM, pathToFileURL(installed))
    } catch {
      // Not above this one.
    }
  }
  return beside
}

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
