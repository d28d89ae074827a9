/** Keys that a person made: what they seal can be opened by whoever guesses how. */
import { readKeys } from './seal.js'

/** A pattern of 16 bytes fills a key in two rounds. Of random keys one in 10^14 has so few different bytes. */
const FEWEST_DIFFERENT = 17

/** Throws, with a message fit for an operator, where a key of the keyring is text, a repetition or a sequence. */
export function refuseGuessableKeys(text: string): void {
  if ([...readKeys(text).values()].some(isGuessable)) {
    throw new Error(
      'SPILLWAY_SEAL_KEYS holds a key that can be guessed (text, a repetition or a sequence): make one by "openssl rand -base64 32"',
    )
  }
}

/** By what random bytes never look like: of those, two keys in 10^14 are printable text throughout. */
function isGuessable(key: Uint8Array): boolean {
  const steps = [...key].map((byte, n) => (byte - (key[n - 1] ?? 0)) & 0xff).slice(1)
  const isText = key.every((byte) => byte >= 0x20 && byte < 0x7f)
  return isText || [key, steps].some((values) => new Set(values).size < FEWEST_DIFFERENT)
}
