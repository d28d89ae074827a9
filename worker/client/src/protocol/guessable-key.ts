/** Detects guessable keys: text, repetitions and sequences instead of random bytes. */
import { readKeys } from './seal.js'

/** A repeated pattern of up to 16 bytes has fewer distinct bytes. So has one random key in 10^14. */
const MIN_DISTINCT_BYTES = 17

/** Throws an error for operators if a key of the keyring is text, a repetition or a sequence. */
export function refuseGuessableKeys(text: string): void {
  if ([...readKeys(text).values()].some(isGuessable)) {
    throw new Error(
      'SPILLWAY_SEAL_KEYS holds a key that can be guessed (text, a repetition or a sequence): make one by "openssl rand -base64 32"',
    )
  }
}

/** Two random keys in 10^14 are printable text throughout. */
function isGuessable(key: Uint8Array): boolean {
  const steps = [...key].map((byte, n) => (byte - (key[n - 1] ?? 0)) & 0xff).slice(1)
  const isText = key.every((byte) => byte >= 0x20 && byte < 0x7f)
  return isText || [key, steps].some((values) => new Set(values).size < MIN_DISTINCT_BYTES)
}
