/**
 * The only table of formats, for worker, import, applications and their drop-ins. Formats of other
 * systems are never made: an account gets a hash of the policy at its next login.
 */
import { argon2AndBcrypt } from './argon2-bcrypt.js'
import { cryptFormats } from './crypt.js'
import { digestFormats } from './digests.js'
import { envelopes } from './envelopes.js'
import type { Format, OldSecrets, Reading } from './format.js'
import { pbkdf2Formats } from './pbkdf2.js'
import { scryptFormats } from './scrypt.js'
import { springFormats } from './spring.js'
import { wrapped } from './wrapped.js'

export const formats: readonly Format[] = [
  ...[argon2AndBcrypt, pbkdf2Formats, scryptFormats, springFormats, cryptFormats, digestFormats].flat(),
  ...[...envelopes, wrapped],
]

export type StoredReading = Reading & { format: Format }

/** The greatest number of envelopes inside each other. */
const DEPTH_MAX = 3
/** Longer texts are not stored hashes. */
const TEXT_MAX_LENGTH = 2_048

/** Readings that are kept, for about all jobs in hand: a job reads its hash several times. */
const RECENT_MAX = 64

/** Returns the parser of stored hashes. Undefined for a text of no format. */
export function createReader(secrets: OldSecrets): (text: string) => StoredReading | undefined {
  const readAt =
    (depth: number) =>
    (text: string): StoredReading | undefined => {
      if (depth > DEPTH_MAX || text.length > TEXT_MAX_LENGTH) return undefined
      const inner = { ...secrets, read: readAt(depth + 1) }
      for (const format of formats) {
        const reading = format.read(text, inner)
        if (reading !== undefined) return { ...reading, format }
      }
      return undefined
    }
  const read = readAt(0)
  const recent = new Map<string, StoredReading | undefined>()
  return (text) => {
    if (recent.has(text)) return recent.get(text)
    const reading = read(text)
    recent.set(text, reading)
    const [oldest] = recent.keys()
    if (recent.size > RECENT_MAX && oldest !== undefined) recent.delete(oldest)
    return reading
  }
}
