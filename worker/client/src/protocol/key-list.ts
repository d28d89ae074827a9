/** Lists of secret keys in environment variables: `name:base64` of 32 bytes each, comma-separated. */

const KEY_BYTES = 32

/** A repeated pattern of up to 16 bytes has fewer distinct bytes. So has one random key in 10^14. */
const MIN_DISTINCT_BYTES = 17

export interface NamedKey {
  name: string
  key: Buffer
}

/** Parses a list, in order. Throws an error for operators that names the variable and contains no part of a key. */
export function parseKeyList(variable: string, text: string): NamedKey[] {
  return text.split(',').map((entry) => {
    const [, name, encoded] = /^\s*([\w-]{1,32}):([A-Za-z0-9+/_=-]+)\s*$/.exec(entry) ?? []
    const key = Buffer.from(encoded ?? '', 'base64')
    if (name === undefined || key.length !== KEY_BYTES)
      throw new Error(`${variable} must be a comma-separated list of kid:base64, each of ${KEY_BYTES} bytes`)
    return { name, key }
  })
}

/** Throws an error for operators if a key of the list is text, a repetition or a sequence instead of random bytes. */
export function refuseGuessableKeys(variable: string, text: string): void {
  if (parseKeyList(variable, text).some(({ key }) => isGuessable(key))) {
    throw new Error(
      `${variable} holds a key that can be guessed (text, a repetition or a sequence): make one by "openssl rand -base64 32"`,
    )
  }
}

/** Two random keys in 10^14 are printable text throughout. */
function isGuessable(key: Uint8Array): boolean {
  const steps = [...key].map((byte, n) => (byte - (key[n - 1] ?? 0)) & 0xff).slice(1)
  const isText = key.every((byte) => byte >= 0x20 && byte < 0x7f)
  return isText || [key, steps].some((values) => new Set(values).size < MIN_DISTINCT_BYTES)
}
