/**
 * The one instance of the drop-in replacements, opened by the environment when it is first needed.
 * A program of its own, too.
 */
import type { ExactPasswords } from './application/create-passwords.js'
import { readEnvironment } from './drop-in/environment.js'

let opening: Promise<ExactPasswords> | undefined

/**
 * Its code is loaded by the first call: programs that import the replacements start as soon as with
 * the packages.
 */
export function sharedPasswords(): Promise<ExactPasswords> {
  opening ??= open()
  return opening
}

// Jest loads nothing once a test has ended, and a test may have left a call without await.
if (process.env.JEST_WORKER_ID) void import('./application/create-passwords.js').catch(() => undefined)

/** Rejects with an error that names all variables that are invalid. */
async function open(): Promise<ExactPasswords> {
  try {
    const { openPasswords } = await import('./application/create-passwords.js')
    return openPasswords(readEnvironment(process.env))
  } catch (error) {
    opening = undefined
    throw error
  }
}

/**
 * Rejects what waits with `closed`, and ends the process beside or disconnects. A later call opens
 * it again.
 */
export async function close(): Promise<void> {
  const closing = await opening
  opening = undefined
  await closing?.close()
}
