/** The one instance of the drop-in replacements, opened by the environment when it is first needed. A program of its own, too. */
import type { ExactPasswords } from './application/create-passwords.js'
import { readEnvironment } from './drop-in/environment.js'
import { openPasswords } from './open-passwords.js'

let opened: ExactPasswords | undefined

/** Throws an error that names all variables that are invalid. */
export function sharedPasswords(): ExactPasswords {
  opened ??= openPasswords(readEnvironment(process.env))
  return opened
}

/** Rejects what waits with `closed`, and ends the process beside or disconnects. A later call opens it anew. */
export async function close(): Promise<void> {
  const closing = opened
  opened = undefined
  await closing?.close()
}
